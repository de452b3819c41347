"""The tools that a run may call: those that staff enabled for its user and that the request allows.

Three are reserved: they are offered to a model only for a reason, and no package can take their names.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from msgspec import Struct

from agents.requests import OWN_LABEL, RunRequest, ServerTools
from agents.tools import demo_note, large_results, mcp, platform_actions, registry, show, web_search
from agents.tools.base import Tool
from config import sql
from config.auth import accounts
from config.cache import CachedValue
from config.errors import InvalidRequest
from prompts import app_settings
from prompts.allowances import tiers

_RESERVED: Final = {tool.name: tool for tool in (demo_note.TOOL, large_results.TOOL, show.TOOL)}


class Policy(Struct, frozen=True):
    """A row of `agents.ToolPolicy`."""

    tool: str
    enabled: bool
    requires_approval: bool | None
    allowed_to: str
    tier: str | None
    expires_after_s: int | None


async def find_granted(names: tuple[str, ...] | None, *, user_id: UUID | None) -> tuple[Tool, ...]:
    """Return the tools for a request that names some, none (`()`), or makes no choice (None)."""
    if names == ():
        return ()
    searches = await app_settings.aget("web_search_enabled") is True
    offered = [
        tool
        for tool in (*registry.all_tools(), *mcp.connected_tools())
        if (names is None or tool.name in names) and (searches or tool.name != web_search.NAME)
    ]
    policies = await _policies.get()
    if show.TOOL.name in (policies if names is None else names):
        offered.append(show.TOOL)
    found = [await _apply_policy(policies.get(tool.name), tool, user_id) for tool in offered]
    return tuple(tool for tool in found if tool is not None)


async def find_for_request(request: RunRequest, *, user_id: UUID) -> tuple[Tool, ...]:
    """Return the tools for a request, by its entries for servers: those offered, some with approval."""
    tools = await find_granted(request.server_tools, user_id=user_id)
    if request.search == "kept":
        tools = tuple(map(_with_stored_pages, tools))
    listed, only = request.servers, request.tool_choice.listed_only
    if not listed and not only:
        return tools
    offered = ((tool, [one for one in listed if one.label == _label(tool)]) for tool in tools)
    return tuple(
        _with_approval(tool, entries)
        for tool, entries in offered
        if (not entries and not only) or any(_contains(one.names, tool) for one in entries)
    )


def _with_stored_pages(tool: Tool) -> Tool:
    if tool.name != web_search.NAME:
        return tool
    return dataclasses.replace(tool, call=web_search.search_stored_pages)


def _label(tool: Tool) -> str:
    return tool.server_label or OWN_LABEL


def _contains(names: Sequence[str] | None, tool: Tool) -> bool:
    """Return whether the names include this tool's; a tool of MCP may have the server's own name."""
    if names is None or tool.name in names:
        return True
    return any(mcp.model_name(tool.server_label, name) == tool.name for name in names)


def _with_approval(tool: Tool, entries: Sequence[ServerTools]) -> Tool:
    if any(_contains(one.approve, tool) for one in entries):
        return dataclasses.replace(tool, requires_approval=True)
    return tool


async def check_requested(
    servers: Sequence[ServerTools], needs: Sequence[str], *, user_id: UUID
) -> None:
    """Raise InvalidRequest `tool_not_supported` for an unknown server, or a disabled tool."""
    labels = {one.label for one in servers} - {OWN_LABEL}
    if labels and labels - await mcp.find_served_labels(labels):
        raise InvalidRequest(
            "No MCP server of this label is connected here; those that a request brings are not.",
            code="tool_not_supported",
            param="tools",
        )
    if web_search.NAME in needs and not await _can_search(user_id):
        raise InvalidRequest(
            "The web search is not switched on here.", code="tool_not_supported", param="tools"
        )


async def _can_search(user_id: UUID) -> bool:
    """Return whether staff have enabled the web search for this user, and it has a key."""
    if await app_settings.aget("web_search_enabled") is not True:
        return False
    return await find(web_search.NAME, user_id=user_id) is not None and await web_search.has_key()


async def find(name: str, *, user_id: UUID | None) -> Tool | None:
    """Return the tool with that name for this user's runs, or None."""
    tool = _RESERVED.get(name) or registry.find(name)
    return tool and await _apply_policy((await _policies.get()).get(name), tool, user_id)


async def find_action(name: str, *, user_id: UUID | None) -> Tool | None:
    """Return the platform action with that name for this user's runs, or None."""
    tool = platform_actions.find(name)
    return tool and await _apply_policy((await _policies.get()).get(name), tool, user_id)


async def _apply_policy(policy: Policy | None, tool: Tool, user_id: UUID | None) -> Tool | None:
    """Return the tool with its policy's settings, or None if the policy forbids it to this user."""
    if policy is None:
        return tool
    if not policy.enabled or not await _allows(policy, user_id):
        return None
    return dataclasses.replace(
        tool,
        requires_approval=tool.requires_approval
        if policy.requires_approval is None
        else policy.requires_approval,
        approval_ttl_s=policy.expires_after_s or tool.approval_ttl_s,
    )


async def _allows(policy: Policy, user_id: UUID | None) -> bool:
    match policy.allowed_to:
        case "everyone":
            return True
        case "staff":
            account = await accounts.find(user_id) if user_id else None
            return account is not None and account.is_staff
    return user_id is not None and await tiers.has_tier(user_id, policy.tier or "")


_POLICIES: Final = """
SELECT tool, enabled, requires_approval, allowed_to, tier_id, expires_after_s FROM agents_toolpolicy
"""


async def _fetch_policies() -> dict[str, Policy]:
    return {row[0]: Policy(*row) for row in await sql.every(_POLICIES)}


def clear_cache() -> None:
    """Invalidate the cache in this process."""
    _policies.clear()


_policies: Final = CachedValue(_fetch_policies, seconds=0.5)
