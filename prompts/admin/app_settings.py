"""One page with all app settings, as typed fields with defaults."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
    UnfoldBooleanWidget,
)

from config.staff.lists import ModelAdmin
from config.staff.staff_pages import ReportAdmin
from prompts import app_settings
from prompts.admin.forms import CheckedField, get_staff
from prompts.endpoints import web_search_key
from prompts.models import AppSetting

_KEY: Final = web_search_key.FIELD
_REMOVE: Final = f"remove_{_KEY}"


class SettingsForm(forms.Form):
    """A form with a field per setting, and the key of the web search."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for setting in app_settings.SETTINGS.values():
            self.fields[setting.name] = _field(setting)
        shown = web_search_key.get_masked_key()
        source = {"db": "", "env": ", from EXA_API_KEY", "none": "none"}[shown.source]
        self.fields[_KEY] = CheckedField(
            web_search_key.check_key,
            label="New key for the web search",
            widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
            help_text="The key is encrypted and never shown again. Present key: "
            f"{shown.masked}{source}.",
        )
        if shown.source == "db":
            self.fields[_REMOVE] = forms.BooleanField(
                label="Remove the key for the web search", required=False, widget=UnfoldBooleanWidget()
            )


@admin.register(AppSetting)
class AppSettingAdmin(ReportAdmin):
    """A form in place of a list; settings cannot be added or deleted."""

    has_change_permission = ModelAdmin.has_change_permission

    @method_decorator(sensitive_post_parameters(_KEY))
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        form = SettingsForm(request.POST or None, initial=app_settings.get_all())
        if request.method == "POST" and self.has_change_permission(request) and form.is_valid():
            self._save(request, form)
            return HttpResponseRedirect(request.path)
        return self.render_page(
            request,
            "prompts/app_settings.html",
            title="App settings",
            form=form,
            may_change=self.has_change_permission(request),
        )

    def _save(self, request: HttpRequest, form: SettingsForm) -> None:
        for name in form.changed_data:
            if name in app_settings.SETTINGS:
                app_settings.change(name, form.cleaned_data[name], by=get_staff(request))
                self.log_change(request, AppSetting.objects.get(pk=name), "Changed.")
        if form.cleaned_data[_KEY] or form.cleaned_data.get(_REMOVE):
            web_search_key.store_key(form.cleaned_data[_KEY], by=get_staff(request))
        self.message_user(request, "The settings are saved.", messages.SUCCESS)


def _field(setting: app_settings.Setting) -> forms.Field:
    words: dict[str, Any] = {
        "label": setting.name.replace("_", " ").capitalize(),
        "help_text": setting.help,
    }
    if not setting.options and isinstance(setting.default, str):
        check = partial(app_settings.check, setting.name)
        return CheckedField(check, widget=UnfoldAdminTextInputWidget(), **words)
    if not setting.options:
        return forms.BooleanField(required=False, widget=UnfoldBooleanSwitchWidget(), **words)
    choices = [(option, option) for option in setting.options]
    return forms.ChoiceField(choices=choices, widget=UnfoldAdminSelectWidget(), **words)
