"""From a public model name to the endpoints that may serve it, in order.

A model is routable when its mapping is active and has a candidate on an active endpoint that has a
key or needs none. `_CANDIDATES` says so for runs, `_ROUTABLE` for pages; a test
keeps the two together. Keys are opened here, for a run, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Prefetch, Q, QuerySet
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from config.database import connection
from config.errors import InvalidRequest
from prompts import app_settings, secrets, tiers
from prompts.models import Endpoint, ModelCandidate, ModelMapping, ProviderDialect
from prompts.prices import OwnPrice
from prompts.remembered import Remembered
from prompts.secrets import Purpose, Sealed

log = structlog.get_logger(__name__)

_SCOPE: Final = "global"
_CANDIDATES: Final = """
      FROM prompts_modelmapping m
      JOIN prompts_modelcandidate c ON c.mapping_id = m.id
      JOIN prompts_endpoint e ON e.id = c.endpoint_id AND e.is_active
      LEFT JOIN prompts_secret s ON s.id = e.secret_id
     WHERE m.is_active AND (e.dialect = 'demo' OR s.id IS NOT NULL OR NOT e.needs_key)
"""
_ROUTES: Final = f"""
    SELECT m.key, m.supports_vision, m.supports_tools, m.required_tier, m.family, m.context_tokens,
           floor(extract(epoch FROM m.updated_at))::bigint,
           e.id, e.provider, e.dialect, e.base_url, c.model, s.name, s.sealed,
           c.input_price, c.output_price, c.cached_input_price, c.cache_write_price,
           c.temperature, c.max_tokens, c.top_p, c.frequency_penalty, c.presence_penalty, c.stop,
           c.seed, c.reasoning_effort, c.reasoning_budget, e.images_by_url
    {_CANDIDATES}
     ORDER BY m.key, c.position, c.id
"""
_ROUTABLE: Final = Q(endpoint__is_active=True) & (
    Q(endpoint__dialect=ProviderDialect.DEMO)
    | Q(endpoint__secret__isnull=False)
    | Q(endpoint__needs_key=False)
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One endpoint and model that may serve a run, and how it is asked unless the request says.

    `key` is open, so it stays out of the repr.
    """

    endpoint_id: int
    provider: str
    dialect: str
    base_url: str
    model: str
    key: str = field(repr=False)
    temperature: float | None
    max_tokens: int | None
    price: OwnPrice | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning: str = ""
    reasoning_budget: int | None = None
    images_by_url: bool = False


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """A public model name (`global:xai`), its key (`xai`) and its candidates, first choice first.

    What it supports, every candidate does, so that a fallback loses nothing.
    """

    name: str
    key: str
    candidates: tuple[Candidate, ...]
    supports_vision: bool = False
    supports_tools: bool = True
    context_tokens: int | None = None


async def route(model: str) -> ModelRoute:
    """Who may serve `model` (`global:xai` or `xai`), with opened keys; for the start of a run.

    At most half a second old. Raises `InvalidRequest` with code model_required or model_not_allowed.
    """
    key = _key(model)
    mapping = (await _routes.get()).get(key)
    rows = mapping.candidates if mapping else ()
    candidates = tuple(made for row in rows if (made := _candidate(*row)) is not None)
    if mapping is None or not candidates:
        raise _not_allowed()
    return ModelRoute(
        _name(key),
        key,
        candidates,
        mapping.supports_vision,
        mapping.supports_tools and not mapping.offline,
        mapping.context_tokens,
    )


@dataclass(frozen=True, slots=True)
class Served:
    """A model that an account may use: its canonical public name, the family of its quota, and the
    dialects of its endpoints."""

    name: str
    family: str
    dialects: tuple[str, ...] = ()


async def check_model(model: str, *, user_id: UUID) -> Served:
    """The model, if it can be routed and the account's tier reaches.

    Opens no key and is at most half a second old; a statement only for a model that needs a tier.
    Raises `InvalidRequest` model_required, or model_not_allowed, also for a tier too low: such a model
    is not listed either.
    """
    key = _key(model)
    mapping = (await _routes.get()).get(key)
    if mapping is None or not await tiers.reaches(user_id, mapping.required_tier):
        raise _not_allowed()
    return Served(_name(key), mapping.family, mapping.dialects)


async def default_model() -> str:
    """The public name of the model of runs that name none: the setting `default_model`, else the first.

    A model that the setting names and that cannot be routed is refused (`model_not_allowed`): another
    one might cost more than staff meant to spend. Of the rest the demo and models for a tier come last.
    """
    chosen = str(await app_settings.aget("default_model"))
    routes = await _routes.get()
    if chosen and (key := _key(chosen)) in routes:
        return _name(key)
    if chosen or not routes:
        raise _not_allowed()
    return _name(
        min(routes, key=lambda key: (bool(routes[key].required_tier), routes[key].offline, key))
    )


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that an account may ask for; `updated_at` in epoch seconds."""

    name: str
    key: str
    provider: str
    updated_at: int


async def listed(user_id: UUID) -> list[Listed]:
    """The models of `list_models`, at most half a second old; a statement where one needs a tier."""
    routes = await _routes.get()
    needs = {mapping.required_tier for mapping in routes.values()} - {""}
    reached = await tiers.all_reached(user_id) if needs else {""}
    return [
        Listed(_name(key), key, mapping.provider, mapping.updated_at)
        for key, mapping in routes.items()
        if mapping.required_tier in reached
    ]


def forget() -> None:
    """Let this process read the routes again at once; called after a change."""
    _routes.forget()


def list_models(user_id: UUID) -> list[dict[str, Any]]:
    """The models that the account may ask for, for `GET /api/v1/llm/models` (schema llm_models_item)."""
    reached = tiers.reached(user_id)
    return [
        _item(mapping, mapping.routable)
        for mapping in _mappings()
        if mapping.routable and mapping.required_tier in reached
    ]


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
    name: str | None,
    sealed: str | None,
    *told: Any,
) -> Candidate | None:
    try:
        secret = Sealed(name, sealed) if name and sealed else None
        key = secrets.open_secret(secret, Purpose.MODEL_ENDPOINT.of(endpoint_id))
    except secrets.SecretUnreadable as error:
        log.error("candidate skipped", endpoint_id=endpoint_id, model=model, reason=error.detail)
        return None
    prices, (temperature, max_tokens, top_p, frequency, presence, stop, *more) = told[:4], told[4:]
    return Candidate(
        endpoint_id,
        provider,
        dialect,
        base_url,
        model,
        key,
        temperature,
        max_tokens,
        OwnPrice(*prices) if prices[0] is not None else None,
        top_p,
        frequency,
        presence,
        tuple(stop),
        *more,
    )


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A routable model as it is remembered; `candidates` are the arguments of `_candidate`, sealed."""

    supports_vision: bool
    supports_tools: bool
    required_tier: str
    family: str
    context_tokens: int | None
    updated_at: int
    candidates: tuple[tuple[Any, ...], ...]

    @property
    def provider(self) -> str:
        return str(self.candidates[0][1])

    @property
    def offline(self) -> bool:
        return self.dialects[0] == ProviderDialect.DEMO

    @property
    def dialects(self) -> tuple[str, ...]:
        return tuple(candidate[2] for candidate in self.candidates)


async def _read_routes() -> dict[str, _Mapping]:
    """Every routable model by its key, in order of key; one statement for all of them."""
    async with connection() as held:
        rows = await (await held.execute(_ROUTES)).fetchall()
    return {
        key: _Mapping(sees, calls, tier, family or key, size, at, tuple(row[7:] for row in candidates))
        for (key, sees, calls, tier, family, size, at), candidates in groupby(
            rows, key=lambda row: row[:7]
        )
    }


_routes: Final = Remembered(_read_routes, seconds=0.5)


@receiver((post_save, post_delete))
def _changed(sender: type[Any], **_: Any) -> None:
    """What staff save takes effect at once in the process where they save it."""
    if sender in (Endpoint, ModelMapping, ModelCandidate):
        transaction.on_commit(forget)


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
            "supports_tools": mapping.supports_tools and not offline,
            "supports_vision": mapping.supports_vision,
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
