"""Routing from a public model name to the endpoints that may serve it, in order.

A model is routable if its mapping is active and has a candidate on an active endpoint that has a key
or needs none. `_CANDIDATES` states this rule for runs and `_ROUTABLE` for pages; a test compares
them. Keys of endpoints are opened only here, for a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from typing import Any, Final
from uuid import UUID

import structlog
from django.db.models import Prefetch, Q, QuerySet

from config import sql
from config.cache import CachedValue
from config.errors import InvalidRequest
from config.http.documentation.json_types import Shown, Time
from prompts import app_settings
from prompts.allowances import tiers
from prompts.endpoints import secrets
from prompts.endpoints.published_prices import TokenCounts
from prompts.endpoints.secrets import Purpose
from prompts.models import Endpoint, ModelCandidate, ModelMapping, ProviderDialect

log = structlog.get_logger(__name__)

_SCOPE: Final = "global"
_MILLION: Final = Decimal(1_000_000)
_CANDIDATES: Final = """
      FROM prompts_modelmapping m
      JOIN prompts_modelcandidate c ON c.mapping_id = m.id
      JOIN prompts_endpoint e ON e.id = c.endpoint_id AND e.is_active
      LEFT JOIN prompts_secret s ON s.id = e.secret_id
     WHERE m.is_active AND (e.dialect = 'demo' OR s.id IS NOT NULL OR NOT e.needs_key)
"""
_ROUTES: Final = f"""
    SELECT m.key, m.supports_vision, m.supports_tools, m.required_tier,
           coalesce(nullif(m.family, ''), m.key), m.context_tokens,
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
class OwnPrice:
    """US dollars per million tokens; None: cached tokens cost as much as other input."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None

    def compute_cost(self, counted: TokenCounts) -> Decimal:
        read = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        fresh = counted.input - counted.cached - counted.cache_write
        return (
            fresh * self.input
            + counted.cached * read
            + counted.cache_write * write
            + counted.output * self.output
        ) / _MILLION


@dataclass(frozen=True, slots=True)
class Candidate:
    """An endpoint and model that may serve a run, with default parameters for requests.

    `key` is in plain text and therefore not part of the repr.
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
    """A public model name (`global:xai`), its key (`xai`) and its candidates in order of preference.

    Every candidate supports what the route supports, so a fallback loses nothing.
    """

    name: str
    key: str
    candidates: tuple[Candidate, ...]
    supports_vision: bool = False
    supports_tools: bool = True
    context_tokens: int | None = None


async def route(model: str) -> ModelRoute:
    """Return the route of `model` (`global:xai` or `xai`), with opened keys, for the start of a run.

    The data is cached for half a second; a model that is not in it is looked for once more, since the
    process that accepted the run has seen it. Raise `InvalidRequest` model_required or
    `ModelNotAllowed`.
    """
    key = _parse_key(model)
    mapping = (await _routes.get()).get(key) or (await _routes.get_anew()).get(key)
    rows = mapping.candidates if mapping else ()
    candidates = tuple(made for row in rows if (made := _open_candidate(row)) is not None)
    if mapping is None or not candidates:
        raise _not_allowed()
    return ModelRoute(
        mapping.name,
        key,
        candidates,
        mapping.supports_vision,
        mapping.supports_tools and not mapping.offline,
        mapping.context_tokens,
    )


async def check_model(model: str, *, user_id: UUID) -> ServedModel:
    """Return the model if it is routable and the account has the required tier.

    No key is opened; the data is cached for half a second, and only a tier needs a statement. Raise
    `InvalidRequest` model_required or `ModelNotAllowed` (also for a tier that is too low).
    """
    key = _parse_key(model)
    mapping = (await _routes.get()).get(key)
    if mapping is None or not await tiers.has_tier(user_id, mapping.required_tier):
        raise _not_allowed()
    return mapping


async def get_default_model() -> str:
    """Return the public name of the model for runs that name none.

    This is the setting `default_model`, or else the first model; the demo and models that require a
    tier come last. If the model of the setting is not routable, raise `ModelNotAllowed` (another model
    might cost more than staff intended).
    """
    chosen = str(await app_settings.aget("default_model"))
    routes = await _routes.get()
    if chosen and (key := _parse_key(chosen)) in routes:
        return _full_name(key)
    if chosen or not routes:
        raise _not_allowed()
    return _full_name(
        min(routes, key=lambda key: (bool(routes[key].required_tier), routes[key].offline, key))
    )


async def list_available(user_id: UUID) -> list[ServedModel]:
    """Return the models of `list_models`, cached for half a second; only tiers need a statement."""
    routes = await _routes.get()
    required = {mapping.required_tier for mapping in routes.values()} - {""}
    reached = await tiers.list_reached(user_id) if required else {""}
    return [mapping for mapping in routes.values() if mapping.required_tier in reached]


def list_models(user_id: UUID) -> list[dict[str, Any]]:
    """Return the models that the account may request (GET /api/v1/llm/models, llm_models_item)."""
    routable = routable_candidates().select_related("endpoint")
    mappings: Any = (
        ModelMapping.objects.filter(is_active=True, required_tier__in=tiers.list_reached_sync(user_id))
        .prefetch_related(Prefetch("candidates", queryset=routable, to_attr="routable"))
        .order_by("key")
    )
    return [_serialize_model(mapping, mapping.routable) for mapping in mappings if mapping.routable]


class ListedEndpoint(Shown, frozen=True):
    """An endpoint with a masked key."""

    endpoint_id: int
    name: str
    provider: str
    dialect: str
    base_url: str
    is_active: bool
    key_masked: str
    updated_at: Time


def list_endpoints() -> list[ListedEndpoint]:
    """Return all endpoints, for staff."""
    return [
        ListedEndpoint(
            endpoint_id=endpoint.pk,
            name=endpoint.name,
            provider=endpoint.provider,
            dialect=endpoint.dialect,
            base_url=endpoint.base_url,
            is_active=endpoint.is_active,
            key_masked=endpoint.secret.mask if endpoint.secret else "",
            updated_at=endpoint.updated_at.isoformat(),
        )
        for endpoint in Endpoint.objects.select_related("secret").order_by("name")
    ]


def routable_candidates() -> QuerySet[ModelCandidate]:
    """Return the candidates that can serve a run if their mapping is active."""
    return ModelCandidate.objects.filter(_ROUTABLE)


def _parse_key(model: str) -> str:
    model = model.strip()
    if not model:
        raise InvalidRequest("model is required.", code="model_required")
    if "\x00" in model:
        raise _not_allowed()
    return model.removeprefix(f"{_SCOPE}:")


def _full_name(key: str) -> str:
    return f"{_SCOPE}:{key}"


def _not_allowed() -> ModelNotAllowed:
    return ModelNotAllowed(param="model")


class ModelNotAllowed(InvalidRequest):
    """This model is not available. Take a name from GET /api/v1/llm/models or GET /v1/models."""

    code = "model_not_allowed"


def _open_candidate(row: tuple[Any, ...]) -> Candidate | None:
    """Return the candidate of a row of `_ROUTES`, from its endpoint on, with the opened key."""
    *address, name, sealed = row[:7]
    prices, (temperature, max_tokens, top_p, frequency, presence, stop, *more) = row[7:11], row[11:]
    try:
        secret = secrets.sealed_or_none(name, sealed)
        key = secrets.open_secret(secret, Purpose.MODEL_ENDPOINT.of(address[0]))
    except secrets.SecretUnreadable as error:
        log.error("candidate skipped", endpoint_id=address[0], model=address[-1], reason=error.detail)
        return None
    price = OwnPrice(*prices) if prices[0] is not None else None
    parameters = (temperature, max_tokens, price, top_p, frequency, presence, tuple(stop), *more)
    return Candidate(*(*address, key, *parameters))


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A routable model, as it is cached; `updated_at` is in epoch seconds.

    `candidates` are arguments of `_open_candidate`, with sealed keys.
    """

    key: str
    supports_vision: bool
    supports_tools: bool
    required_tier: str
    family: str
    context_tokens: int | None
    updated_at: int
    candidates: tuple[tuple[Any, ...], ...] = field(repr=False)

    @property
    def name(self) -> str:
        return _full_name(self.key)

    @property
    def provider(self) -> str:
        return str(self.candidates[0][1])

    @property
    def offline(self) -> bool:
        return self.dialects[0] == ProviderDialect.DEMO

    @property
    def dialects(self) -> tuple[str, ...]:
        return tuple(candidate[2] for candidate in self.candidates)


async def _read_routes() -> dict[str, ServedModel]:
    """Return every routable model by key, sorted by key, with one statement."""
    rows = await sql.every(_ROUTES)
    return {
        facts[0]: ServedModel(*(*facts, tuple(row[7:] for row in candidates)))
        for facts, candidates in groupby(rows, key=lambda row: row[:7])
    }


_routes: Final = CachedValue(_read_routes, seconds=0.5)
clear_cache: Final = _routes.clear


def _serialize_model(mapping: ModelMapping, candidates: list[ModelCandidate]) -> dict[str, Any]:
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
            "supports_tools": mapping.supports_tools,
            "supports_vision": mapping.supports_vision,
            "max_output_tokens": first.max_tokens,
        },
        "endpoint_hint": {"endpoint_id": first.endpoint.pk, "endpoint_name": first.endpoint.name},
    }
