"""A binding as staff enter it: what cannot work is refused with the fix, before any run meets it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError

from agents import config_form
from agents.dialects.recognise import DIALECTS
from agents.hostcalls.sealed_config import REFERENCE, secret_names
from agents.hosting.manifest import RunnerManifest
from agents.hosting.run_context import SCOPES
from agents.models import KnowledgeBase, RunnerBinding
from config.errors import InvalidRequest
from prompts import secrets
from prompts.models import ModelMapping, Secret

_AREAS: Final = ("plugin", "workspace", "binding")


class BindingForm(forms.ModelForm):  # type: ignore[type-arg]
    """A rule; `manifest` is the runner's whose settings are asked for."""

    manifest: ClassVar[RunnerManifest | None] = None
    new_keys: dict[str, str] = {}  # noqa: RUF012 - replaced, never changed

    class Meta:
        model = RunnerBinding
        fields: ClassVar = [
            "name", "is_active", "runner_id", "position", "model", "dialect", "prompt", "user", "tier",
            "thread_id", "own_model", "further_models", "tools", "knowledge_bases", "storage",
            "platform_actions", "state_enabled", "state_scopes", "calls_per_minute", "deadline_s",
            "delivery",
        ]  # fmt: skip

    def clean_dialect(self) -> str:
        given = str(self.cleaned_data["dialect"])
        if given and given not in DIALECTS:
            raise ValidationError(f"There is no protocol {given}: write one of {', '.join(DIALECTS)}.")
        return given

    def clean_storage(self) -> list[str]:
        return self._among("storage", _AREAS)

    def clean_state_scopes(self) -> list[str]:
        return self._among("state_scopes", SCOPES)

    def clean_knowledge_bases(self) -> list[str]:
        known = KnowledgeBase.objects.values_list("name", flat=True)
        return self._among("knowledge_bases", tuple(known), "the names of knowledge bases")

    def clean_further_models(self) -> list[str]:
        keys = ModelMapping.objects.values_list("key", flat=True)
        known = tuple(name for key in keys for name in (key, f"global:{key}"))
        return self._among("further_models", known, "the names of model mappings")

    def clean(self) -> None:
        super().clean()
        if self.manifest is None or self.cleaned_data.get("runner_id") != self.manifest.id:
            return
        self.new_keys = config_form.keys_of(self.manifest, self.cleaned_data)
        for name, key in self.new_keys.items():
            try:
                secrets.check_key(key)
            except InvalidRequest as refused:
                self.add_error(config_form.PREFIX + name, refused.detail)
        if not self.errors:
            asked = {i.name for i in self.manifest.config_schema if not config_form.is_secret(i)}
            kept = {name: value for name, value in self._before().items() if name not in asked}
            self.instance.config = kept | config_form.config_of(self.manifest, self.cleaned_data)

    def _before(self) -> dict[str, Any]:
        held = self.instance.config
        return held if isinstance(held, dict) else {}

    def _among(self, name: str, known: tuple[str, ...], are: str = "") -> list[str]:
        given: list[str] = self.cleaned_data[name] or []
        if wrong := [one for one in given if one not in known]:
            raise ValidationError(f"There is no {', '.join(wrong)}: write of {are or ', '.join(known)}.")
        return given


def seal_keys(binding: RunnerBinding, keys: dict[str, str]) -> None:
    """Seal the keys that were entered, in place of the present ones."""
    for item, key in keys.items():
        name = f"runner-binding-{binding.pk}-{item}"
        secrets.store(name, key)
        binding.config[item] = {REFERENCE: name}
    if keys:
        binding.save(update_fields=["config"])


def forget_keys(bindings: Iterable[RunnerBinding]) -> None:
    """The keys of these go with them."""
    names = [name for binding in bindings for name in secret_names(binding.config)]
    Secret.objects.filter(name__in=names, name__startswith="runner-binding-").delete()


def form_for(manifest: RunnerManifest | None, config: dict[str, Any]) -> type[BindingForm]:
    """The form with a field for each of the runner's own settings."""
    declared: dict[str, Any] = config_form.fields_of(manifest, config) if manifest else {}
    return type("BindingForm", (BindingForm,), {"manifest": manifest, **declared})
