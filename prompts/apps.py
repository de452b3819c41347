"""The app, its models that the audit log watches, and those whose changes clear a cache."""

from django.apps import AppConfig
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import post_delete, post_save


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
        _clear_caches()


def _clear_caches() -> None:
    """Apply changes by staff at once in the process that saves them."""
    from prompts import models
    from prompts.allowances import budgets, quotas
    from prompts.endpoints import routing

    caches = {
        models.Endpoint: routing.clear_cache,
        models.ModelMapping: routing.clear_cache,
        models.ModelCandidate: routing.clear_cache,
        models.Quota: quotas.clear_cache,
        models.Budget: budgets.clear_cache,
    }

    def clear(sender: type[Model], **_: object) -> None:
        transaction.on_commit(caches[sender])

    for model in caches:
        for signal in (post_save, post_delete):
            signal.connect(clear, sender=model, weak=False, dispatch_uid="prompts.clear_cache")
