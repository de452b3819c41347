"""The admin pages of conversations, accounts and metrics."""

from conversations.admin.accounts import AccountAdmin as AccountAdmin
from conversations.admin.metrics import MetricsAdmin as MetricsAdmin
from conversations.admin.threads import ThreadAdmin as ThreadAdmin
