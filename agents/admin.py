"""What admin shows of agents: runs, approvals, spending, tools, runners, knowledge and the library."""

from agents import approval_admin as approval_admin
from agents import exercise_admin as exercise_admin
from agents import knowledge_admin as knowledge_admin
from agents import mcp_admin as mcp_admin
from agents import plugin_admin as plugin_admin
from agents import run_admin as run_admin
from agents import runner_admin as runner_admin
from agents import spend_admin as spend_admin
from agents import tool_policy_admin as tool_policy_admin
from agents.endpoint_look import look_at
from agents.prompt_preview import compose
from prompts import given

given.compose = compose
given.test_endpoint = look_at
