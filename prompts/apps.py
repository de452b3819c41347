"""What of this room's rows the audit log tells."""

from django.apps import AppConfig


class PromptsConfig(AppConfig):
    name = "prompts"

    def ready(self) -> None:
        from config.audit.watching import watch
        from prompts import models

        use = ("active_version", "is_active", "previous_version", "split_version", "split_percent")
        watch(
            models.Prompt, ignored=(*use, "deleted_at", "created_at")
        )  # their actions tell of the rest
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
        watch(models.Entitlement, name=lambda held: f"{held.user_id}: {held.tier_id}")
        watch(
            models.Quota,
            name=lambda quota: f"{quota.family}, {quota.user_id or quota.tier_id or 'everybody'}",
        )
