"""The manifest of a runner: its capabilities, required permissions and config form (seed §3)."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, get_args, get_type_hints

from msgspec import Struct

_SECRET: Final = re.compile(r"secret|token|passw|api.?key|credential|private.?key", re.IGNORECASE)
_LONGEST_NAME: Final = 128
I18n = dict[str, str]
"""A text by language, `{"en_US": …, "zh_Hans": …}`."""


class Capabilities(Struct, frozen=True):
    """What the runner can do; the last three only the released runtimes know."""

    streaming: bool = False
    tool_calling: bool = False
    knowledge_retrieval: bool = False
    multimodal_input: bool = False
    event_context: bool = True
    platform_api: bool = False
    interrupt: bool = False
    stateful_session: bool = False
    self_managed_context: bool = True
    skill_authoring: bool = False
    steering: bool = False
    interactions: bool = False


class Permissions(Struct, frozen=True):
    """The most that the runner may need; what it gets is also cut by its binding."""

    models: tuple[Literal["invoke", "stream", "rerank", "count_tokens"], ...] = ()
    tools: tuple[Literal["detail", "call"], ...] = ()
    knowledge_bases: tuple[Literal["list", "retrieve"], ...] = ()
    history: tuple[Literal["page", "search"], ...] = ()
    events: tuple[Literal["get", "page"], ...] = ()
    artifacts: tuple[Literal["metadata", "read"], ...] = ()
    storage: tuple[Literal["plugin", "workspace", "binding"], ...] = ()
    files: tuple[Literal["config", "knowledge"], ...] = ()
    platform_api: tuple[str, ...] = ()
    interactions: tuple[Literal["request"], ...] = ()


_OPERATIONS: Final[dict[str, tuple[str, ...]]] = {
    group: get_args(get_args(hint)[0])
    for group, hint in get_type_hints(Permissions).items()
    if group != "platform_api"
}


def known_permissions(permissions: dict[str, Any]) -> dict[str, Any]:
    """Return the permissions without operations that this Host lacks: they are granted to nobody."""
    return {group: _known(group, operations) for group, operations in permissions.items()}


def _known(group: str, operations: Any) -> Any:
    known = _OPERATIONS.get(group)
    if known is None or not isinstance(operations, list):
        return operations
    return [one for one in operations if one in known]


class ContextPolicy(Struct, frozen=True):
    """Who keeps the working context; the Host inlines no history unless this asks for some.

    A tail is inlined for `recent_tail` and `summary_tail`, and for an `ownership` other than
    `self_managed`; a bound of 0 leaves it to the Host. `owns_compaction` changes nothing: the Host never
    sums up. What is not said of `supports_…` is as the permissions have it.
    """

    ownership: Literal["self_managed", "host_bootstrap", "hybrid"] = "self_managed"
    bootstrap: Literal["none", "current_event", "recent_tail", "summary_tail"] = "current_event"
    max_inline_events: int = 0
    max_inline_bytes: int = 0
    supports_history_pull: bool = True
    supports_history_search: bool | None = None
    supports_artifact_pull: bool = True
    owns_compaction: bool = True
    wants_static_context_refs: bool = True


class FormItem(Struct, frozen=True):
    """One field of the binding's config form (`DynamicFormItemSchema`); a key is stored under its name.

    ValueError for a name that is empty or longer than 128 characters.
    """

    type: str
    name: str
    label: I18n = {}
    description: I18n | None = None
    required: bool = False
    default: Any = None
    options: list[dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= _LONGEST_NAME:
            raise ValueError(f"a name in config_schema has 1 to {_LONGEST_NAME} characters")

    @property
    def is_secret(self) -> bool:
        """Return whether the field's value is a key: keys are sealed, and never shown again."""
        named_so = self.type == "string" and bool(_SECRET.search(self.name))
        return named_so or self.type in ("secret", "password")


class RunnerManifest(Struct, frozen=True, kw_only=True):
    """One runner as it declares itself (`AgentRunnerManifest`)."""

    id: str
    name: str
    label: I18n
    description: I18n | None = None
    capabilities: Capabilities = Capabilities()
    permissions: Permissions = Permissions()
    context: ContextPolicy = ContextPolicy()
    config_schema: tuple[FormItem, ...] = ()
    metadata: dict[str, Any] = {}

    @property
    def title(self) -> str:
        """Return the label in one language."""
        return text_of(self.label) or self.name


MODEL_FIELDS: Final = frozenset(
    ("llm-model-selector", "model-fallback-selector", "rerank-model-selector", "model")
)
KNOWLEDGE_FIELDS: Final = frozenset(("knowledge-base-selector", "knowledge-base-multi-selector"))
TOOL_FIELDS: Final = frozenset(("tools-selector", "tool-selector"))


def text_of(texts: I18n | None) -> str:
    """Return the English text, or else any."""
    if not texts:
        return ""
    for language in ("en_US", "en"):
        if texts.get(language):
            return texts[language]
    return next(iter(texts.values()))
