"""From a public model name to the endpoints that may serve it, in order.

A model is routable when its mapping is active and has a candidate on an active endpoint that has a
key (the offline demo needs none). `_CANDIDATES` says so for runs, `_ROUTABLE` for pages; a test
keeps the two together. Keys are opened here, for a run, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from django.db.models import Prefetch, Q, QuerySet
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from config.database import connection
from config.errors import InvalidRequest
from prompts import secrets
from prompts.models import Endpoint, ModelCandidate, ModelMapping, ProviderDialect
from prompts.remembered import Remembered

log = structlog.get_logger(__name__)

_SCOPE: Final = "global"
_CANDIDATES: Final = """
      FROM prompts_modelmapping m
      JOIN prompts_modelcandidate c ON c.mapping_id = m.id
      JOIN prompts_endpoint e ON e.id = c.endpoint_id AND e.is_active
      LEFT JOIN prompts_secret s ON s.id = e.secret_id
     WHERE m.is_active AND (e.dialect = 'demo' OR s.id IS NOT NULL)
"""
_ROUTES: Final = f"""
    SELECT m.key, e.id, e.provider, e.dialect, e.base_url, c.model, s.sealed, c.temperature, c.max_tokens
    {_CANDIDATES}
     ORDER BY c.position, c.id
"""
_ROUTABLE: Final = Q(endpoint__is_active=True) & (
    Q(endpoint__dialect=ProviderDialect.DEMO) | Q(endpoint__secret__isnull=False)
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One endpoint and model that may serve a run; `key` is open, so it stays out of the repr."""

    endpoint_id: int
    provider: str
    dialect: str
    base_url: str
    model: str
    key: str = field(repr=False)
    temperature: float | None
    max_tokens: int | None


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """A public model name (`global:xai`), its key (`xai`) and its candidates, first choice first."""

    name: str
    key: str
    candidates: tuple[Candidate, ...]


async def route(model: str) -> ModelRoute:
    """Who may serve `model` (`global:xai` or `xai`), with opened keys; for the start of a run.

    At most half a second old. Raises `InvalidRequest` with code model_required or model_not_allowed.
    """
    key = _key(model)
    rows = (await _routes.get()).get(key, ())
    candidates = tuple(made for row in rows if (made := _candidate(*row)) is not None)
    if not candidates:
        raise _not_allowed()
    return ModelRoute(name=_name(key), key=key, candidates=candidates)


async def check_model(model: str) -> str:
    """The canonical public name of a routable model; opens no key and is at most half a second old."""
    key = _key(model)
    if key not in await _routes.get():
        raise _not_allowed()
    return _name(key)


def forget() -> None:
    """Let this process read the routes again at once; called after a change."""
    _routes.forget()


def list_models() -> list[dict[str, Any]]:
    """The routable models for `GET /api/v1/llm/models` (schema llm_models_item)."""
    return [_item(mapping, mapping.routable) for mapping in _mappings() if mapping.routable]


def list_endpoints() -> list[dict[str, Any]]:
    """All endpoints for staff, keys masked."""
    endpoints = Endpoint.objects.select_related("secret").order_by("name")
    return [_endpoint(endpoint) for endpoint in endpoints]


def routable_candidates() -> QuerySet[ModelCandidate]:
    """The candidates that could serve a run if their mapping is active."""
    return ModelCandidate.objects.filter(_ROUTABLE)


def _key(model: str) -> str:
    model = model.strip()
    if not model:
        raise InvalidRequest("model is required.", code="model_required")
    if "\x00" in model:
        raise _not_allowed()
    return model.removeprefix(f"{_SCOPE}:")


def _name(key: str) -> str:
    return f"{_SCOPE}:{key}"


def _not_allowed() -> InvalidRequest:
    return InvalidRequest(
        "This model is not available. Take a name from GET /api/v1/llm/models.", code="model_not_allowed"
    )


def _candidate(
    endpoint_id: int,
    provider: str,
    dialect: str,
    base_url: str,
    model: str,
    sealed: str | None,
    *limits: Any,
) -> Candidate | None:
    try:
        key = secrets.open_sealed(sealed) if sealed else ""
    except secrets.SecretUnreadable as error:
        log.error("candidate skipped", endpoint_id=endpoint_id, model=model, reason=error.detail)
        return None
    return Candidate(endpoint_id, provider, dialect, base_url, model, key, *limits)


async def _read_routes() -> dict[str, list[tuple[Any, ...]]]:
    """What `_candidate` takes, for every routable model key; one statement for all of them."""
    async with connection() as held:
        rows = await (await held.execute(_ROUTES)).fetchall()
    routes: dict[str, list[tuple[Any, ...]]] = {}
    for key, *facts in rows:
        routes.setdefault(key, []).append(tuple(facts))
    return routes


_routes: Final = Remembered(_read_routes, seconds=0.5)


@receiver((post_save, post_delete))
def _changed(sender: type[Any], **_: Any) -> None:
    """What staff save takes effect at once in the process where they save it."""
    if sender in (Endpoint, ModelMapping, ModelCandidate):
        forget()


def _mappings() -> list[Any]:
    """The active mappings, each with its routable candidates in order as `routable`."""
    routable = routable_candidates().select_related("endpoint")
    return list(
        ModelMapping.objects.filter(is_active=True)
        .prefetch_related(Prefetch("candidates", queryset=routable, to_attr="routable"))
        .order_by("key")
    )


def _item(mapping: ModelMapping, candidates: list[ModelCandidate]) -> dict[str, Any]:
    first = candidates[0]
    offline = first.endpoint.dialect == ProviderDialect.DEMO
    return {
        "name": mapping.name,
        "label": mapping.label or mapping.key,
        "scope_type": _SCOPE,
        "scope_key": mapping.key,
        "updated_at": mapping.updated_at.isoformat(),
        "candidates_count": len(candidates),
        "required_tier": mapping.required_tier or None,
        "provider": first.endpoint.provider,
        "dialect": None if offline else first.endpoint.dialect,
        "capabilities": {
            "supports_tools": not offline,
            "supports_vision": False,  # no field of a mapping says otherwise yet
            "max_output_tokens": first.max_tokens,
        },
        "endpoint_hint": {"endpoint_id": first.endpoint.pk, "endpoint_name": first.endpoint.name},
    }


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "endpoint_id": endpoint.pk,
        "name": endpoint.name,
        "provider": endpoint.provider,
        "dialect": endpoint.dialect,
        "base_url": endpoint.base_url,
        "is_active": endpoint.is_active,
        "key_masked": endpoint.secret.mask if endpoint.secret else "",
        "updated_at": endpoint.updated_at.isoformat(),
    }
