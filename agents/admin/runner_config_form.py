"""The form of a runner's own settings, made from its manifest (`DynamicFormItemSchema`, seed §3.2).

Each item of the manifest's `config_schema` is a field of its type; an unknown type is entered as JSON.
The entered values become the binding's `config`, under the names of the items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from agents.host.sealed_config import REFERENCE, has_reference
from agents.host_protocol.manifest import FormItem, RunnerManifest, text_of
from agents.models import KnowledgeBase
from agents.tools import mcp, registry
from prompts.models import ModelMapping

PREFIX: Final = "config__"
Options = list[tuple[str, str]]
_NONE: Final[tuple[Any, ...]] = ("", None, [], ())


def form_fields(manifest: RunnerManifest, config: dict[str, Any]) -> dict[str, forms.Field]:
    """Return a form field per item, by its name in the admin form, with its present value."""
    found: dict[str, forms.Field] = {}
    for item in manifest.config_schema:
        if item.is_secret:
            found[PREFIX + item.name] = _key(item, is_set=bool(config.get(item.name)))
            continue
        field = _FIELDS.get(item.type, _json)(item)
        field.label = text_of(item.label) or item.name
        field.help_text = text_of(item.description)
        field.required = item.required
        field.initial = _initial(item, config.get(item.name, item.default))
        found[PREFIX + item.name] = field
    return found


def entered_config(manifest: RunnerManifest, cleaned: dict[str, Any]) -> dict[str, Any]:
    """Return the entered values as the runner reads them, without empty values and keys."""
    return {
        item.name: _stored(item, cleaned[PREFIX + item.name])
        for item in manifest.config_schema
        if not item.is_secret and cleaned.get(PREFIX + item.name) not in _NONE
    }


def entered_keys(manifest: RunnerManifest, cleaned: dict[str, Any]) -> dict[str, str]:
    """Return the keys that were entered now, in plain text: the caller seals them."""
    items = [item.name for item in manifest.config_schema if item.is_secret]
    return {name: cleaned[PREFIX + name] for name in items if cleaned.get(PREFIX + name)}


def _key(item: FormItem, *, is_set: bool) -> forms.Field:
    kept = "A key is set; empty keeps it. " if is_set else ""
    return forms.CharField(
        label=text_of(item.label) or item.name,
        help_text=f"{kept}Sealed before it is stored and never shown again. {text_of(item.description)}",
        required=item.required and not is_set,
        max_length=4_096,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )


def _initial(item: FormItem, value: Any) -> Any:
    if item.type == "model-fallback-selector" and isinstance(value, dict):
        return [value.get("primary"), *(value.get("fallbacks") or [])]
    if item.type == "array[string]" and isinstance(value, list):
        return "\n".join(map(str, value))
    return value


def _stored(item: FormItem, value: Any) -> Any:
    if item.type == "model-fallback-selector":
        return {"primary": value[0], "fallbacks": list(value[1:])}
    if item.type == "array[string]":
        return [line.strip() for line in value.splitlines() if line.strip()]
    return value


def _json(item: FormItem) -> forms.Field:
    widget = UnfoldAdminTextareaWidget(attrs={"rows": 4})
    return forms.JSONField(widget=widget, validators=[_no_reference])


def _no_reference(value: Any) -> None:
    """Raise ValidationError for a reference to a sealed key: keys are entered in fields of their own."""
    if has_reference(value):
        raise ValidationError(
            f"{REFERENCE} cannot be entered: a key is entered in a field of its own, which the runner's "
            "form has for it."
        )


def _choice(item: FormItem) -> forms.Field:
    options = [(str(o.get("name", o.get("value", ""))), _option(o)) for o in item.options or ()]
    return _one_of(options)


def _option(option: dict[str, Any]) -> str:
    label = option.get("label")
    name = option.get("name", option.get("value", ""))
    return text_of(label) or str(name) if isinstance(label, dict) else str(label or name)


def _models() -> Options:
    keys = ModelMapping.objects.filter(is_active=True).order_by("key").values_list("key", flat=True)
    return [(f"global:{key}", f"global:{key}") for key in keys]


def _bases() -> Options:
    names = KnowledgeBase.objects.filter(is_active=True).values_list("name", flat=True)
    return [(name, name) for name in names]


def _tools() -> Options:
    return [(tool.name, tool.name) for tool in (*registry.all_tools(), *mcp.connected_tools())]


def _one_of(options: Options) -> forms.Field:
    return forms.ChoiceField(choices=[("", "–"), *options], widget=UnfoldAdminSelectWidget())


def _some_of(options: Options) -> forms.Field:
    return forms.MultipleChoiceField(choices=options, widget=UnfoldAdminSelectMultipleWidget())


_Maker = Callable[[FormItem], forms.Field]
_MAKERS: Final[dict[tuple[str, ...], _Maker]] = {
    ("string",): lambda item: forms.CharField(max_length=20_000, widget=UnfoldAdminTextInputWidget()),
    ("text", "array[string]"): lambda item: forms.CharField(
        max_length=200_000, widget=UnfoldAdminTextareaWidget(attrs={"rows": 5})
    ),
    ("integer", "int"): lambda item: forms.IntegerField(widget=UnfoldAdminIntegerFieldWidget()),
    ("float", "number"): lambda item: forms.FloatField(widget=UnfoldAdminTextInputWidget()),
    ("boolean", "bool"): lambda item: forms.BooleanField(widget=UnfoldBooleanWidget()),
    ("select",): _choice,
    ("model", "llm-model-selector", "rerank-model-selector"): lambda item: _one_of(_models()),
    ("model-fallback-selector",): lambda item: _some_of(_models()),
    ("knowledge-base-selector",): lambda item: _one_of(_bases()),
    ("knowledge-base-multi-selector",): lambda item: _some_of(_bases()),
    ("tool-selector", "tools-selector"): lambda item: _some_of(_tools()),
}
_FIELDS: Final = {kind: make for kinds, make in _MAKERS.items() for kind in kinds}
