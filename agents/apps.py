"""The app's configuration: models for the audit log, and models that hold users' content."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"

    def ready(self) -> None:
        from agents import models
        from agents.host.actions.artifacts import find_own
        from agents.models import host, mcp
        from config.audit.watched_models import watch, watch_pages
        from config.telemetry import tracing
        from conversations.threads.artifacts import add_source
        from conversations.upkeep.holdings import add_content

        add_content(host.HostState, "owner_id", thread_column="thread_id")
        add_content(host.HostArtifact, "owner_id", thread_column="thread_id", run_column="run_id")
        add_source(find_own)

        if tracing.is_on():
            from agents.worker.run_traces import trace_settled_runs

            trace_settled_runs()
            tracing.tracer()  # imports the SDK now, and not on an event loop

        watch(mcp.McpServer, ignored=("headers", "env", "created_at"))
        watch(models.ToolPolicy)
        reported = (
            "status",
            "problem",
            "spoken",
            "runners",
            "passed_over",
            "seen_at",
            "held_by",
            "held_until",
        )
        watch(models.PluginRuntime, ignored=("token", "identity", "created_at", *reported))
        watch(models.Exercise, ignored=("created_at",))
        watch(models.LibraryVersion, ignored=("content", "added", "updated", "deleted", "published_at"))
        watch_pages(("prompts", "agents", "accounts", "auth"), but=("prompts.appsetting",))
