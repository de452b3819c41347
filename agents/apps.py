"""What of this room's rows the audit log tells, and what is a user's content."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"

    def ready(self) -> None:
        from agents import host_models, mcp_models, models
        from config.audit.watching import watch, watch_pages
        from conversations.holdings import add_content

        add_content(host_models.HostState, "owner_id")
        add_content(host_models.HostArtifact, "owner_id")

        watch(mcp_models.McpServer, ignored=("headers", "env", "created_at"))
        watch(models.ToolPolicy)
        told = ("status", "problem", "spoken", "runners", "seen_at", "held_by", "held_until")
        watch(models.PluginRuntime, ignored=("token", "identity", "created_at", *told))
        watch(models.Exercise, ignored=("created_at",))
        watch(models.LibraryVersion, ignored=("content", "added", "updated", "deleted", "published_at"))
        watch_pages(("prompts", "agents", "accounts", "auth"), but=("prompts.appsetting",))
