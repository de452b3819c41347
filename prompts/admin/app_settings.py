"""App settings: one page with all of them, typed, each with its default until it is changed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from prompts import app_settings
from prompts.admin.forms import staff
from prompts.models import AppSetting


class SettingsForm(forms.Form):
    """A field for each setting of the registry."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for setting in app_settings.SETTINGS.values():
            self.fields[setting.name] = _field(setting)


@admin.register(AppSetting)
class AppSettingAdmin(ModelAdmin):  # type: ignore[misc]
    """The list is the form; there is nothing to add or delete."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AppSetting | None = None) -> bool:
        return False

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        return HttpResponseRedirect("../..")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        form = SettingsForm(request.POST or None, initial=app_settings.everything())
        if request.method == "POST" and self.has_change_permission(request) and form.is_valid():
            self._save(request, form)
            return HttpResponseRedirect(request.path)
        return self._page(request, form)

    def _save(self, request: HttpRequest, form: SettingsForm) -> None:
        for name in form.changed_data:
            app_settings.change(name, form.cleaned_data[name], by=staff(request))
            self.log_change(request, AppSetting.objects.get(pk=name), "Changed.")
        self.message_user(request, "The settings are saved.", messages.SUCCESS)

    def _page(self, request: HttpRequest, form: SettingsForm) -> TemplateResponse:
        context = {
            "title": "App settings",
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "may_change": self.has_change_permission(request),
        }
        site = self.admin_site.each_context(request)
        return TemplateResponse(request, "prompts/app_settings.html", site | context)


def _field(setting: app_settings.Setting) -> forms.Field:
    words: dict[str, Any] = {
        "label": setting.name.replace("_", " ").capitalize(),
        "help_text": setting.help,
    }
    if not setting.options:
        return forms.BooleanField(required=False, widget=UnfoldBooleanSwitchWidget(), **words)
    choices = [(option, option) for option in setting.options]
    return forms.ChoiceField(choices=choices, widget=UnfoldAdminSelectWidget(), **words)
