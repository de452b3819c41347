"""The admin pages of agents: runs, approvals, spending, tools, runners, knowledge and the library."""

from agents.admin import (
    approvals as approvals,
)
from agents.admin import (
    exercises as exercises,
)
from agents.admin import (
    knowledge as knowledge,
)
from agents.admin import (
    mcp_servers as mcp_servers,
)
from agents.admin import (
    plugin_runtimes as plugin_runtimes,
)
from agents.admin import (
    runners as runners,
)
from agents.admin import (
    runs as runs,
)
from agents.admin import (
    spending as spending,
)
from agents.admin import (
    tool_policies as tool_policies,
)
from agents.admin.endpoint_check import check_endpoint
from agents.admin.prompt_preview import compose_preview
from prompts.admin import hooks

hooks.compose = compose_preview
hooks.test_endpoint = check_endpoint
