"""The tools of a request as OpenAI's clients write them, and the choice that the model has.

Functions, alone or in a namespace, and custom tools are the client's own (`client_tools`). The hosted
tools are those of this server: `mcp` with its label (or that of an MCP server that staff connected),
and `web_search`. Any other is refused by name, since a model that silently lacks it would answer
wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agents.dialects.openai_responses import client_tools
from agents.dialects.openai_responses.client_tools import ToolName
from agents.dialects.wire import Wire
from agents.requests import OWN_LABEL, ClientTool, Search, ServerTools, ToolChoice
from config.errors import InvalidRequest

LONGEST_NAME: Final = 512
MOST_TOOLS: Final = 1_000
WEB_SEARCH: Final = "web_search.exa"
_SEARCHES: Final = frozenset(
    {
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)
_NOT_OURS: Final = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "local_shell",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
    }
)
_Name = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]


class Tool(BaseModel):
    """A tool of a request; what else there is to say of one depends on its type."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    type: str
    name: _Name = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    format: dict[str, Any] | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    server_label: _Name = ""
    connector_id: str | None = None
    tunnel_id: str | None = None
    allowed_tools: list[_Name] | dict[str, Any] | None = None
    require_approval: str | dict[str, Any] | None = None
    external_web_access: bool | None = None
    filters: dict[str, Any] | None = None
    user_location: dict[str, Any] | None = None
    search_context_size: str | None = None


class Tools(Struct, frozen=True):
    """All facts of tools in a request; the names are those of `RunRequest`."""

    tools: tuple[ClientTool, ...] = ()
    named: dict[str, ToolName] = {}
    server_tools: tuple[str, ...] | None = None
    servers: tuple[ServerTools, ...] = ()
    needs: tuple[str, ...] = ()
    search: Search = "any"
    tool_choice: ToolChoice = ToolChoice()


def read_tools(tools: Iterable[Tool]) -> Tools:
    """Return the offered tools. Raise InvalidRequest `tool_not_supported`, naming the place."""
    mine = _Clients()
    servers: list[ServerTools] = []
    needs: set[str] = set()
    search: Search = "any"
    for place, tool in enumerate(tools):
        here = f"tools[{place}]"
        match tool.type:
            case "mcp":
                servers.append(_server(tool, here))
            case kind if kind in _SEARCHES:
                _check_search(tool, here)
                needs.add(WEB_SEARCH)
                search = "kept" if tool.external_web_access is False else search
            case _:
                mine.take(tool, here)
    return Tools(tuple(mine.functions), mine.named, None, tuple(servers), tuple(needs), search)


class _Clients:
    """The client's own tools as functions, each with a name of its own."""

    def __init__(self) -> None:
        self.functions: list[ClientTool] = []
        self.named: dict[str, ToolName] = {}
        self._names: set[str] = set()

    def take(self, tool: Tool, here: str, namespace: Tool | None = None) -> None:
        """Take a function, a custom tool, or a namespace of them."""
        match tool.type:
            case "function":
                self._add(tool, here, namespace, tool.parameters or {}, strict=bool(tool.strict))
            case "custom":
                self._add(tool, here, namespace, client_tools.INPUT, strict=True)
            case "namespace" if namespace is None:
                if not tool.name:
                    raise _unsupported(f"{here}.name: a namespace needs a name")
                for place, inner in enumerate(tool.tools or ()):
                    self.take(inner, f"{here}.tools[{place}]", tool)
            case kind:
                named = kind if kind in _NOT_OURS else "that is asked for"
                raise _unsupported(f"{here}.type: tools of the type {named} are not offered here")

    def _add(self, tool: Tool, here: str, namespace: Tool | None, schema: Wire, *, strict: bool) -> None:
        if not tool.name:
            raise _unsupported(f"{here}.name: a {tool.type} tool needs a name")
        named = ToolName(tool.name, namespace.name if namespace else "", tool.type == "custom")
        is_plain = named == ToolName(named.function_name)
        if named.function_name in (self.named if is_plain else self._names):
            raise _unsupported(f"{here}.name: another tool of the request is called so")
        if not is_plain:
            self.named[named.function_name] = named
        self._names.add(named.function_name)
        if len(self.functions) >= MOST_TOOLS:
            raise _unsupported(f"tools: at most {MOST_TOOLS} are taken")
        above = namespace.description if namespace else None
        description = "\n\n".join(filter(None, (above, tool.description, _form(tool, here))))
        self.functions.append(ClientTool(named.function_name, description, schema, strict))


def _form(tool: Tool, here: str) -> str:
    """Return the required form of a custom tool's input, in words; "" for any text."""
    match tool.format if tool.type == "custom" else None:
        case None | {"type": "text"}:
            return ""
        case {"type": "grammar", "syntax": "lark" | "regex" as syntax, "definition": str(definition)}:
            return f"The input must follow this grammar ({syntax}):\n{definition}"
    raise _unsupported(f"{here}.format: must be a text, or a grammar of lark or regex")


def plain_choice(choice: Any) -> Any:
    """Return a `tool_choice` in this wire's form: litellm's bridge sends that of Chat Completions."""
    match choice:
        case {"type": "function", "function": {"name": str(name), **more}, **rest} if not (more or rest):
            return {"type": "function", "name": name}
    return choice


def apply_choice(offered: Tools, choice: Any) -> Tools:
    """Return the tools under this `tool_choice`. Raise InvalidRequest `invalid_tool_choice`.

    With a function that must be called nothing of ours is offered: the client waits for its own.
    """
    match choice:
        case None | "auto":
            return offered
        case "none":
            return replace(offered, tools=(), server_tools=())
        case "required":
            return _required(offered)
        case {"type": "function" | "custom", "name": str()}:
            return _named(offered, choice)
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list(listed)}:
            allowed = _allowed(offered, listed)
            return _required(allowed) if mode == "required" else allowed
        case {"type": "mcp", "server_label": str(label)}:
            name = choice.get("name")
            if all(server.label != label for server in offered.servers):
                raise _wrong_choice("names an MCP server that `tools` does not hold")
            return _must(offered, name=name if isinstance(name, str) else "", server=label)
        case {"type": str(kind)} if kind in _SEARCHES and offered.needs:
            return _must(offered, name=WEB_SEARCH, server=OWN_LABEL)
    raise _wrong_choice(
        "must be auto, none, required, a function, an MCP server or the web search of `tools`, or "
        "allowed_tools"
    )


def _server(tool: Tool, here: str) -> ServerTools:
    """Return a server by its label; its URL in the request is ignored, because we connect to none."""
    if not tool.server_label:
        raise _unsupported(f"{here}.server_label: an MCP server needs a label")
    if tool.connector_id or tool.tunnel_id:
        raise _unsupported(f"{here}: connectors and tunnels are not offered here")
    return ServerTools(
        tool.server_label,
        _names(tool.allowed_tools, f"{here}.allowed_tools"),
        _asking(tool.require_approval, f"{here}.require_approval"),
    )


def _names(value: object, here: str) -> tuple[str, ...] | None:
    match value:
        case None:
            return None
        case list() if all(isinstance(name, str) for name in value):
            return tuple(value)
        case {"tool_names": list(names), **rest} if not rest and all(isinstance(n, str) for n in names):
            return tuple(names)
    raise _unsupported(f"{here}: must be a list of names, or have tool_names alone")


def _asking(value: str | Wire | None, here: str) -> tuple[str, ...] | None:
    """Return the tools whose calls the client wants to approve; staff's own rules always apply."""
    match value:
        case None | "never":
            return ()
        case "always":
            return None
        case dict() if value.keys() <= {"always", "never"}:
            always = value.get("always")
            return _names(always, f"{here}.always") if always else ()
    raise _unsupported(f"{here}: must be always, never, or say which tools always and which never")


def _check_search(tool: Tool, here: str) -> None:
    """Refuse options that would narrow the search: ours has none."""
    narrowed = {
        "filters": any((tool.filters or {}).values()),
        "user_location": any(key != "type" for key, one in (tool.user_location or {}).items() if one),
        "search_context_size": tool.search_context_size not in (None, "medium"),
    }
    for name, is_asked in narrowed.items():
        if is_asked:
            raise _unsupported(f"{here}.{name}: the web search here cannot be asked for that")


def _required(found: Tools) -> Tools:
    """Require a call of some tool: of the client's, unless the request names ours as well."""
    names_ours = found.servers or found.needs
    if not found.tools and not names_ours:
        raise _wrong_choice("requires a tool, and `tools` holds none")
    return replace(_must(found), server_tools=None if names_ours else ())


def _named(found: Tools, function: Wire) -> Tools:
    if not _holds(found, function):
        raise _wrong_choice("names a function that `tools` does not hold")
    return replace(_must(found, name=client_tools.function_name_of(function)), server_tools=())


def _holds(found: Tools, function: Wire) -> bool:
    """Return whether the function or custom tool that a choice names is offered."""
    name = client_tools.function_name_of(function)
    named = found.named.get(name, ToolName(name))
    offered = any(tool.name == name for tool in found.tools)
    return offered and named.is_custom == (function["type"] == "custom")


def _must(found: Tools, *, name: str = "", server: str = "") -> Tools:
    choice = replace(found.tool_choice, required=True, name=name, server=server)
    return replace(found, tool_choice=choice)


def _allowed(found: Tools, listed: list[Any]) -> Tools:
    """Return only the listed tools: functions by name, servers by label."""
    spaces = _spaces(found)
    labels, searches = {one.label for one in found.servers}, False
    kept: set[str] = set()
    kept_labels: set[str] = set()
    for one in listed:
        match one:
            case {"type": "function" | "custom", "name": str()} if _holds(found, one):
                kept.add(client_tools.function_name_of(one))
            case {"type": "namespace", "name": str(space)} if space in spaces:
                kept |= spaces[space]
            case {"type": "mcp", "server_label": str(label)} if label in labels:
                kept_labels.add(label)
            case {"type": str(kind)} if kind in _SEARCHES and found.needs:
                searches = True
            case _:
                raise _wrong_choice("allows a tool that `tools` does not hold")
    servers = tuple(server for server in found.servers if server.label in kept_labels)
    servers += (ServerTools(OWN_LABEL, (WEB_SEARCH,)),) if searches else ()
    return replace(
        found,
        tools=tuple(tool for tool in found.tools if tool.name in kept),
        server_tools=None if servers else (),
        servers=servers,
        tool_choice=replace(found.tool_choice, listed_only=True),
    )


def _spaces(found: Tools) -> dict[str, set[str]]:
    """Return the functions of each namespace."""
    spaces: dict[str, set[str]] = {}
    for inside, named in found.named.items():
        if named.namespace:
            spaces.setdefault(named.namespace, set()).add(inside)
    return spaces


def without_secrets(tools: Any) -> Iterator[Any]:
    """Yield the tools as a response repeats them: keys of other people's servers are kept nowhere."""
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            yield {key: value for key, value in tool.items() if key not in ("authorization", "headers")}


def _unsupported(message: str) -> InvalidRequest:
    return InvalidRequest(f"{message}.", code="tool_not_supported", param="tools")


def _wrong_choice(message: str) -> InvalidRequest:
    return InvalidRequest(f"tool_choice {message}.", code="invalid_tool_choice", param="tool_choice")
