"""The admin pages of agents: runs, approvals, spending, tools, runners, knowledge and the library."""

from agents.admin import (  # noqa: F401
    approvals,
    exercises,
    knowledge,
    mcp_servers,
    plugin_runtimes,
    runners,
    runs,
    spending,
    tool_policies,
)
from agents.admin.endpoint_check import check_endpoint
from agents.admin.prompt_preview import compose_preview
from prompts.admin import hooks

hooks.compose = compose_preview
hooks.test_endpoint = check_endpoint
