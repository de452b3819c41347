"""The form of a prompt and of the wording of its next version."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from django import forms
from django.forms.fields import InvalidJSONInput
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from prompts.admin.forms import show_errors
from prompts.models import Prompt
from prompts.wordings import staff_actions


class ToolsField(forms.JSONField):
    """Indented JSON; None is shown as an empty field instead of `null`."""

    def prepare_value(self, value: Any) -> str:
        if value is None or isinstance(value, InvalidJSONInput):
            return value or ""
        return json.dumps(value, ensure_ascii=False, indent=2)


class PromptForm(forms.ModelForm):  # type: ignore[type-arg]
    """A prompt and the wording of its next version, prefilled with the newest one."""

    content = forms.CharField(
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 24, "class": "wording-editor"}),
        help_text="Saving a changed wording makes a new version. Earlier versions do not change.",
    )
    tools_json = ToolsField(
        label="Tools (JSON)",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "class": "wording-editor"}),
        help_text="Optional tool definitions that belong to this wording.",
    )
    note = forms.CharField(
        required=False,
        max_length=staff_actions.LONGEST_NOTE,
        widget=UnfoldAdminTextInputWidget(),
        help_text="What changed and why, for the list of versions.",
    )
    based_on = forms.IntegerField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Prompt
        fields: ClassVar = ["name", "kind", "category", "description"]
        widgets: ClassVar = {"description": UnfoldAdminTextareaWidget(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.newest = self.instance.versions.first() if self.instance.pk else None
        if self.newest is not None:
            self.initial["content"] = self.newest.content
            self.initial["tools_json"] = self.newest.tools_json
            self.initial["based_on"] = self.newest.number

    def clean_content(self) -> str:
        """Replace the CR LF of browsers by LF, so that saving an unchanged wording changes nothing."""
        content: str = self.cleaned_data["content"].replace("\r\n", "\n")
        with show_errors():
            staff_actions.check_wording(content)
        return content

    def clean_tools_json(self) -> Any:
        with show_errors():
            staff_actions.check_tools(self.cleaned_data["tools_json"])
        return self.cleaned_data["tools_json"]

    def clean(self) -> None:
        """Refuse a form that was opened before another person saved a version."""
        super().clean()
        based_on = self.cleaned_data.get("based_on")
        if self.newest is None or based_on == self.newest.number:
            return
        self.data = dict(self.data.items()) | {"based_on": str(self.newest.number)}
        raise forms.ValidationError(
            f"Version {self.newest.number} was saved by {self.newest.author or 'Parley'} since you "
            "opened this page. Compare it below; saving again makes your wording the next version."
        )
