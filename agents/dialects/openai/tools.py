"""The tools of a request as OpenAI's clients write them, and which of them the model must call.

Functions are the client's own. Of hosted tools there are those of this server: `mcp` with its label (or
that of an MCP server that staff connected), and `web_search`. Any other is refused by name, since a
model that silently lacks it would answer wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, StringConstraints

from agents.requests import OWN_LABEL, ClientTool, ServerTools, ToolChoice
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
        "custom",
        "file_search",
        "image_generation",
        "local_shell",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
    }
)
_Name = Annotated[str, StringConstraints(max_length=LONGEST_NAME)]
Wire = dict[str, Any]


class Tool(BaseModel):
    """A tool of a request; what else there is to say of one depends on its type."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    type: str
    name: _Name = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
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
    """All that a request says of tools; the names are those of `RunRequest`."""

    tools: tuple[ClientTool, ...] = ()
    server_tools: tuple[str, ...] | None = None
    servers: tuple[ServerTools, ...] = ()
    needs: tuple[str, ...] = ()
    tool_choice: ToolChoice = ToolChoice()


def read(tools: Iterable[Tool]) -> Tools:
    """What is offered. InvalidRequest `tool_not_supported`, naming the place, for what cannot be."""
    functions: list[ClientTool] = []
    servers: list[ServerTools] = []
    needs: set[str] = set()
    for place, tool in enumerate(tools):
        here = f"tools[{place}]"
        match tool.type:
            case "function":
                functions.append(_function(tool, here))
            case "mcp":
                servers.append(_server(tool, here))
            case kind if kind in _SEARCHES:
                _check_search(tool, here)
                needs.add(WEB_SEARCH)
            case kind:
                named = kind if kind in _NOT_OURS else "that is asked for"
                raise _unsupported(f"{here}.type: tools of the type {named} are not offered here")
    return Tools(tuple(functions), None, tuple(servers), tuple(needs))


def choose(found: Tools, given: Any) -> Tools:
    """What is offered under this `tool_choice`. InvalidRequest `invalid_tool_choice`.

    Beside a function that must be called nothing of ours is offered: the client waits for its own.
    """
    match given:
        case None | "auto":
            return found
        case "none":
            return replace(found, tools=(), server_tools=())
        case "required":
            return _required(found)
        case {"type": "function", "name": str(name)}:
            return _named(found, name)
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list(listed)}:
            allowed = _allowed(found, listed)
            return _required(allowed) if mode == "required" else allowed
        case {"type": "mcp", "server_label": str(label)}:
            name = given.get("name")
            return _must(_listed(found, label), name if isinstance(name, str) else "", label)
        case {"type": str(kind)} if kind in _SEARCHES and found.needs:
            return _must(found, WEB_SEARCH, OWN_LABEL)
    raise _wrong_choice(
        "must be auto, none, required, a function, an MCP server or the web search of `tools`, or "
        "allowed_tools"
    )


def _function(tool: Tool, here: str) -> ClientTool:
    if not tool.name:
        raise _unsupported(f"{here}.name: a function needs a name")
    return ClientTool(tool.name, tool.description or "", tool.parameters or {}, bool(tool.strict))


def _server(tool: Tool, here: str) -> ServerTools:
    """A server by its label; where a request says that it is does not matter: we connect to none."""
    if not tool.server_label:
        raise _unsupported(f"{here}.server_label: an MCP server needs a label")
    if tool.connector_id or tool.tunnel_id:
        raise _unsupported(f"{here}: connectors and tunnels are not offered here")
    return ServerTools(
        tool.server_label,
        _names(tool.allowed_tools, f"{here}.allowed_tools"),
        _asking(tool.require_approval, f"{here}.require_approval"),
    )


def _names(given: object, here: str) -> tuple[str, ...] | None:
    match given:
        case None:
            return None
        case list() if all(isinstance(name, str) for name in given):
            return tuple(given)
        case {"tool_names": list(names), **rest} if not rest and all(isinstance(n, str) for n in names):
            return tuple(names)
    raise _unsupported(f"{here}: must be a list of names, or have tool_names alone")


def _asking(given: str | Wire | None, here: str) -> tuple[str, ...] | None:
    """Whose calls the client wants to approve; staff's own rules hold in any case."""
    match given:
        case None | "never":
            return ()
        case "always":
            return None
        case dict() if given.keys() <= {"always", "never"}:
            always = given.get("always")
            return _names(always, f"{here}.always") if always else ()
    raise _unsupported(f"{here}: must be always, never, or say which tools always and which never")


def _check_search(tool: Tool, here: str) -> None:
    """Refuse what would narrow the search: ours has no such words."""
    narrowed = {
        "filters": any((tool.filters or {}).values()),
        "user_location": any(key != "type" for key, one in (tool.user_location or {}).items() if one),
        "search_context_size": tool.search_context_size not in (None, "medium"),
        "external_web_access": tool.external_web_access is False,
    }
    for name, is_asked in narrowed.items():
        if is_asked:
            raise _unsupported(f"{here}.{name}: the web search here cannot be asked for that")


def _required(found: Tools) -> Tools:
    """Some tool must be called: of the client's, if the request does not name ours as well."""
    names_ours = found.servers or found.needs
    if not found.tools and not names_ours:
        raise _wrong_choice("requires a tool, and `tools` holds none")
    choice = replace(found.tool_choice, required=True)
    return replace(found, tool_choice=choice, server_tools=None if names_ours else ())


def _named(found: Tools, name: str) -> Tools:
    if all(tool.name != name for tool in found.tools):
        raise _wrong_choice("names a function that `tools` does not hold")
    choice = replace(found.tool_choice, required=True, name=name)
    return replace(found, tool_choice=choice, server_tools=())


def _must(found: Tools, name: str, label: str) -> Tools:
    choice = replace(found.tool_choice, required=True, name=name, server=label)
    return replace(found, tool_choice=choice)


def _listed(found: Tools, label: str) -> Tools:
    if all(server.label != label for server in found.servers):
        raise _wrong_choice("names an MCP server that `tools` does not hold")
    return found


def _allowed(found: Tools, listed: list[Any]) -> Tools:
    """Only what is listed: functions by name, servers by label."""
    names, labels, searches = (
        {tool.name for tool in found.tools},
        {one.label for one in found.servers},
        False,
    )
    kept: set[str] = set()
    kept_labels: set[str] = set()
    for one in listed:
        match one:
            case {"type": "function", "name": str(name)} if name in names:
                kept.add(name)
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


def without_secrets(tools: Any) -> Iterator[Any]:
    """The tools as a response repeats them: what opens other people's servers is kept nowhere."""
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            yield {key: value for key, value in tool.items() if key not in ("authorization", "headers")}


def _unsupported(message: str) -> InvalidRequest:
    return InvalidRequest(f"{message}.", code="tool_not_supported", param="tools")


def _wrong_choice(message: str) -> InvalidRequest:
    return InvalidRequest(f"tool_choice {message}.", code="invalid_tool_choice", param="tool_choice")
