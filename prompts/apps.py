"""The app, and its models that the audit log watches."""

from django.apps import AppConfig


class PromptsConfig(AppConfig):
    name = "prompts"

    def ready(self) -> None:
        from config.audit.watched_models import watch
        from prompts import models

        use = ("active_version", "is_active", "previous_version", "split_version", "split_percent")
        watch(models.Prompt, ignored=(*use, "deleted_at", "created_at"))  # actions record those
        watch(models.Endpoint, ignored=("secret", "created_at"))
        watch(models.ModelMapping)
        watch(models.ModelCandidate, of="mapping")
        watch(models.Tier)
        watch(
            models.Budget,
            name=lambda budget: str(
                budget.user_id or budget.tier_id or ("all" if budget.is_total else "each")
            ),
        )
        watch(models.Entitlement, name=lambda row: f"{row.user_id}: {row.tier_id}")
        watch(
            models.Quota,
            name=lambda quota: f"{quota.family}, {quota.user_id or quota.tier_id or 'everybody'}",
        )
