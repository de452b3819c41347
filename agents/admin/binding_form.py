"""The form of a binding: it refuses what cannot work, with the fix, before a run meets it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

from agents.admin import runner_config_form
from agents.dialects.recognition import DIALECTS
from agents.host.sealed_config import has_reference, owner_of, reference_to
from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.run_context import SCOPES
from agents.models import KnowledgeBase, RunnerBinding
from agents.models.host import StorageArea
from config.errors import InvalidRequest
from prompts.endpoints import secrets
from prompts.models import ModelMapping, Secret


class BindingForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form of a rule; `manifest` is that of the runner whose settings it shows."""

    manifest: ClassVar[RunnerManifest | None] = None
    new_keys: dict[str, str] = {}  # noqa: RUF012 - replaced, never changed

    def clean_dialect(self) -> str:
        dialect = str(self.cleaned_data["dialect"])
        if dialect and dialect not in DIALECTS:
            raise ValidationError(f"There is no protocol {dialect}: write one of {', '.join(DIALECTS)}.")
        return dialect

    def clean_storage(self) -> list[str]:
        return self._among("storage", StorageArea.values)

    def clean_state_scopes(self) -> list[str]:
        return self._among("state_scopes", SCOPES)

    def clean_knowledge_bases(self) -> list[str]:
        known = list(KnowledgeBase.objects.values_list("name", flat=True))
        return self._among("knowledge_bases", known, "the names of knowledge bases")

    def clean_further_models(self) -> list[str]:
        keys = ModelMapping.objects.values_list("key", flat=True)
        known = tuple(name for key in keys for name in (key, f"global:{key}"))
        return self._among("further_models", known, "the names of model mappings")

    def clean(self) -> None:
        super().clean()
        if self.changes_runner:
            self.instance.config = {
                name: v for name, v in self._before().items() if not has_reference(v)
            }
            return
        if self.manifest is None or self.cleaned_data.get("runner_id") != self.manifest.id:
            return
        self.new_keys = runner_config_form.entered_keys(self.manifest, self.cleaned_data)
        for name, key in self.new_keys.items():
            try:
                secrets.check_key(key)
            except InvalidRequest as refused:
                self.add_error(runner_config_form.PREFIX + name, refused.detail)
        if not self.errors:
            shown = {item.name for item in self.manifest.config_schema if not item.is_secret}
            kept = {name: value for name, value in self._before().items() if name not in shown}
            self.instance.config = kept | runner_config_form.entered_config(
                self.manifest, self.cleaned_data
            )

    @property
    def changes_runner(self) -> bool:
        """Return whether another runner is chosen: the keys entered for one runner go to no other."""
        return self.instance.pk is not None and "runner_id" in self.changed_data

    def _before(self) -> dict[str, Any]:
        """Return the present config without references to keys of other owners."""
        config = self.instance.config
        if not isinstance(config, dict):
            return {}
        return {
            name: value
            for name, value in config.items()
            if not has_reference(value) or value == reference_to(owner_of(self.instance.pk, name))
        }

    def _among(self, name: str, known: Sequence[str], are: str = "") -> list[str]:
        names: list[str] = self.cleaned_data[name] or []
        if wrong := [one for one in names if one not in known]:
            raise ValidationError(f"There is no {', '.join(wrong)}: write of {are or ', '.join(known)}.")
        return names


def seal_keys(binding: RunnerBinding, keys: dict[str, str]) -> None:
    """Seal the entered keys; they replace the present ones."""
    for item, key in keys.items():
        owner = owner_of(binding.pk, item)
        secrets.store(owner, key)
        binding.config[item] = reference_to(owner)
    if keys:
        binding.save(update_fields=["config"])


def forget_keys(bindings: Iterable[RunnerBinding]) -> int:
    """Delete the keys of these bindings; return how many there were."""
    names = [owner_of(binding.pk, "").secret_name for binding in bindings]
    return sum(Secret.objects.filter(name__startswith=name).delete()[0] for name in names)


def make_binding_form(manifest: RunnerManifest | None, config: dict[str, Any]) -> type[BindingForm]:
    """Return the form with a field for each of the runner's own settings."""
    declared: dict[str, Any] = runner_config_form.form_fields(manifest, config) if manifest else {}
    return type("BindingForm", (BindingForm,), {"manifest": manifest, **declared})
