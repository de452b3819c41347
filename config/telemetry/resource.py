"""Who sends the telemetry: OpenTelemetry's resource, which its own variables complete."""

from __future__ import annotations

from functools import cache
from typing import Final
from uuid import uuid4

from opentelemetry.sdk.resources import OTELResourceDetector, Resource

SERVICE: Final = "parley"


@cache
def _instance() -> str:
    return str(uuid4())


def make_resource(instance: str = "") -> Resource:
    """Return the resource of this process, or of another instance.

    OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over what stands here.
    """
    own = {"service.name": SERVICE, "service.instance.id": instance or _instance()}
    return Resource.create().merge(Resource(own)).merge(OTELResourceDetector().detect())
