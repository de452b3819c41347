"""OpenTelemetry's own variables, as far as Parley decides by them; the SDK reads the others itself.

A signal is on if it has an address: OTEL_EXPORTER_OTLP_ENDPOINT, or the one of the signal alone.
"""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ImproperlyConfigured

from config import env
from config.process import installation

_HTTP: Final = ("http", "https")
_EXPORTERS: Final = ("otlp", "none")
_PROTOCOL: Final = "http/protobuf"

_disabled = env.flag("OTEL_SDK_DISABLED", False)
_endpoint = env.url("OTEL_EXPORTER_OTLP_ENDPOINT", schemes=_HTTP)
_traces_endpoint = env.url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", schemes=_HTTP)
_traces_exporter = env.choice("OTEL_TRACES_EXPORTER", "otlp", _EXPORTERS)
_metrics_endpoint = env.url("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", schemes=_HTTP)
_metrics_exporter = env.choice("OTEL_METRICS_EXPORTER", "otlp", _EXPORTERS)


def _check_protocol(name: str, protocol: str) -> None:
    """Refuse gRPC, which would need an exporter that the extra `otel` does not bring."""
    if protocol != _PROTOCOL:
        raise ImproperlyConfigured(
            f"{name} must be {_PROTOCOL}, not {protocol!r}: use the collector's HTTP port, usually "
            "4318, or leave it unset."
        )


_check_protocol("OTEL_EXPORTER_OTLP_PROTOCOL", env.text("OTEL_EXPORTER_OTLP_PROTOCOL", _PROTOCOL))
_check_protocol(
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", env.text("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", _PROTOCOL)
)
_check_protocol(
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", env.text("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", _PROTOCOL)
)


def _is_wanted(own_name: str, own: str, exporter: str) -> bool:
    if _disabled or exporter == "none" or not (own or _endpoint):
        return False
    setting = own_name if own else "OTEL_EXPORTER_OTLP_ENDPOINT"
    installation.require_extra("otel", "opentelemetry.exporter.otlp.proto.http", setting=setting)
    return True


METRICS_INTERVAL_S: Final = (
    env.integer("OTEL_METRIC_EXPORT_INTERVAL", 60_000, minimum=1_000, maximum=86_400_000) / 1_000
)
METRICS: Final = _is_wanted("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", _metrics_endpoint, _metrics_exporter)
TRACES: Final = _is_wanted("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", _traces_endpoint, _traces_exporter)
