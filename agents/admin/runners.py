"""Runners in admin: their list, the rules that bind runs to them, and the audit of Host calls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from unfold.decorators import display

from agents.admin.binding_form import forget_keys, make_binding_form, seal_keys
from agents.admin.runner_config_form import PREFIX
from agents.host import bindings, runner_catalogue
from agents.host_protocol.manifest import RunnerManifest, text_of
from agents.models import HostArtifact, HostBlob, HostCall, HostState, RunnerBinding
from agents.runners import registry
from agents.runtimes import runner_sources
from config import database
from config.staff.list_field import LINES
from config.staff.lists import LargeList, ModelAdmin, newest_filter
from config.staff.staff_pages import ReadOnly
from conversations.admin.filters import DayFilter

runner_sources.add_sources()
_DAY: Final = timedelta(days=1)


@admin.register(RunnerBinding)
class RunnerBindingAdmin(ModelAdmin):
    """The rules in the order in which they are tried; a change applies half a second later."""

    list_display = ("position", "name", "runner_id", "is_there", "conditions", "is_active")
    list_display_links = ("name",)
    list_filter = ("is_active",)
    list_select_related = ("prompt", "user", "tier")
    search_fields = ("name", "runner_id", "model")
    raw_id_fields = ("user",)
    fieldsets: ClassVar = [
        (None, {"fields": (("name", "is_active"), ("runner_id", "position"))}),
        (
            "For which runs: all of these must fit",
            {"fields": (("model", "dialect"), ("prompt", "thread_id"), ("user", "tier"))},
        ),
        (
            "What it may have, as far as its manifest asks for it",
            {
                "fields": (
                    "own_model", "further_models", "tools", "knowledge_bases", "storage",
                    "platform_actions",
                )
            },
        ),
        ("State", {"fields": (("state_enabled",), "state_scopes")}),
        ("Bounds", {"fields": (("calls_per_minute", "deadline_s"), "delivery")}),
    ]  # fmt: skip
    change_list_template = "admin/agents/runnerbinding/change_list.html"
    formfield_overrides = LINES

    @display(description="Available", boolean=True)  # type: ignore[untyped-decorator]
    def is_there(self, binding: RunnerBinding) -> bool:
        return binding.runner_id in _manifests()

    @admin.display(description="For")
    def conditions(self, binding: RunnerBinding) -> str:
        named = {
            "model": binding.model,
            "dialect": binding.dialect,
            "prompt": binding.prompt,
            "user": binding.user,
            "tier": binding.tier,
            "conversation": binding.thread_id,
        }
        return ", ".join(f"{name} {value}" for name, value in named.items() if value) or "every run"

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Return the fieldsets, with the runner's own settings once the runner is known."""
        may = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        manifest = _runner_of(request, obj) if may else None
        names = tuple(PREFIX + item.name for item in manifest.config_schema) if manifest else ()
        own = [(f"Settings of {manifest.title}", {"fields": names})] if manifest and names else []
        return [*self.fieldsets[:2], *own, *self.fieldsets[2:]]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = make_binding_form(_runner_of(request, obj), obj.config if obj else {})
        return super().get_form(request, obj, **({"form": form} | kwargs))

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> Any:
        """Return to the form if the runner has settings of its own, which are then entered at once."""
        manifest = _manifests().get(obj.runner_id)
        if manifest and manifest.config_schema and PREFIX not in "".join(request.POST):
            messages.info(request, "Saved. This runner asks for settings: enter them below.")
            return HttpResponseRedirect(reverse("admin:agents_runnerbinding_change", args=[obj.pk]))
        return super().response_add(request, obj, post_url_continue)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and form.changes_runner and forget_keys([obj]):
            messages.warning(request, "The keys entered for the other runner were removed.")
        seal_keys(obj, form.new_keys)
        transaction.on_commit(bindings.clear_cache)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        forget_keys([obj])
        super().delete_model(request, obj)
        transaction.on_commit(bindings.clear_cache)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        forget_keys(queryset)
        super().delete_queryset(request, queryset)
        transaction.on_commit(bindings.clear_cache)

    def get_urls(self) -> list[URLPattern]:
        page = path("runners/", self.admin_site.admin_view(self.runners), name="agents_runners")
        return [page, *super().get_urls()]

    def runners(self, request: HttpRequest) -> HttpResponse:
        """Return the page Runners: every runner with its home, declaration and calls of the last day."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self.render_page(request, "admin/agents/runners.html", title="Runners", runners=_rows())


def _runner_of(request: HttpRequest, obj: Any) -> RunnerManifest | None:
    """Return the manifest of the rule's own runner, or of the one that `?runner_id=` names."""
    return _manifests().get(obj.runner_id if obj else request.GET.get("runner_id", ""))


def _manifests() -> dict[str, RunnerManifest]:
    database.run_sync(runner_sources.refresh())
    return {manifest.id: manifest for manifest in runner_catalogue.list_manifests()}


def _rows() -> list[dict[str, Any]]:
    """Return a row per available runner, and per missing one that a package or a rule names."""
    known, faults = _manifests(), {f"python:{name}": why for name, why in registry.faults().items()}
    rules = list(RunnerBinding.objects.order_by("position").values("runner_id", "name", "is_active"))
    calls = _calls()
    missing = dict.fromkeys((*faults, *(rule["runner_id"] for rule in rules)))
    ids = [*known, *(runner_id for runner_id in missing if runner_id not in known)]
    return [
        {
            "id": runner_id,
            "title": known[runner_id].title if runner_id in known else "",
            "description": text_of(known[runner_id].description) if runner_id in known else "",
            "is_builtin": runner_id.startswith("builtin:"),
            "is_there": runner_id in known,
            "why": faults.get(runner_id) or runner_catalogue.explain_absence(runner_id),
            "permissions": _permissions(known[runner_id]) if runner_id in known else "",
            "rules": [rule["name"] for rule in rules if rule["runner_id"] == runner_id],
            "calls": calls.get(runner_id, {}),
        }
        for runner_id in ids
    ]


def _calls() -> dict[str, dict[str, Any]]:
    """Return the runs, calls and refusals of the last day by runner, with one statement."""
    since = timezone.now() - _DAY
    found = (
        HostCall.objects.filter(at__gte=since)
        .values("runner_id")
        .annotate(
            runs=Count("run_id", distinct=True),
            calls=Count("id"),
            refused=Count("id", filter=~Q(result="ok")),
            last=Max("at"),
        )
        .order_by()
    )
    return {row["runner_id"]: dict(row) for row in found}


def _permissions(manifest: RunnerManifest) -> str:
    may = manifest.permissions
    named = [
        f"{group.replace('_', ' ')}: {', '.join(names)}"
        for group in may.__struct_fields__
        if (names := getattr(may, group))
    ]
    return "; ".join(named)


@admin.register(HostCall)
class HostCallAdmin(ReadOnly, LargeList, ModelAdmin):
    """The audit: the runners' calls of the Host, newest first."""

    list_display = (
        "at",
        "runner_id",
        "action",
        "resource",
        "scope",
        "result_label",
        "elapsed_us",
        "run_id",
    )
    list_filter: ClassVar = [
        newest_filter("result", "result: ok, or the code of a refusal"),
        newest_filter("action", "action"),
        ("at", DayFilter),
    ]
    list_filter_submit = True
    found_by = ("run_id",)
    looked_through = ("runner_id", "resource")
    search_help_text = "A run's id, or part of a runner's id or of a resource among the newest calls"
    ordering = ("-at",)
    sortable_by = ()

    @display(description="Result", ordering="result", label={"ok": "success"})  # type: ignore[untyped-decorator]
    def result_label(self, call: HostCall) -> tuple[str, str]:
        return call.result, call.result


class KeptAdmin(LargeList, ModelAdmin):
    """Rows that runners keep here; staff may view and delete them."""

    sortable_by = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(HostState)
class HostStateAdmin(KeptAdmin):
    """The state that runners keep from run to run."""

    list_display = ("runner_id", "binding_id", "scope", "scope_key", "key", "updated_at")
    list_filter = ("scope",)
    looked_through = ("runner_id", "key", "scope_key")
    fields = ("runner_id", "binding_id", "scope", "scope_key", "key", "value", "updated_at")
    readonly_fields = fields


class BlobForm(forms.ModelForm):  # type: ignore[type-arg]
    """The upload of bytes; a file for a binding's config has area workspace and holder `files`."""

    upload = forms.FileField(required=False, help_text="At most 10 MiB; in place of the present bytes.")

    class Meta:
        model = HostBlob
        fields: ClassVar = ["area", "holder", "key"]

    def clean_upload(self) -> Any:
        upload = self.cleaned_data["upload"]
        if upload is None and self.instance.pk is None:
            raise ValidationError("Choose a file.")
        if upload is not None and upload.size > 10 * 1024 * 1024:
            raise ValidationError("A value has at most 10 MiB.")
        return upload

    def save(self, commit: bool = True) -> Any:
        if (upload := self.cleaned_data.get("upload")) is not None:
            self.instance.content = upload.read()
            self.instance.size = len(self.instance.content)
        return super().save(commit)


@admin.register(HostBlob)
class HostBlobAdmin(LargeList, ModelAdmin):
    """The bytes that runners keep, and files for bindings (area workspace, holder files)."""

    form = BlobForm
    list_display = ("area", "holder", "key", "size", "updated_at")
    list_filter = ("area",)
    looked_through = ("holder", "key")
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("content")


@admin.register(HostArtifact)
class HostArtifactAdmin(KeptAdmin):
    """The files that runners made."""

    list_display = (
        "created_at",
        "name",
        "artifact_type",
        "mime_type",
        "size",
        "runner_id",
        "expires_at",
    )
    found_by = ("id", "run_id")
    looked_through = ("name", "runner_id")
    fields = (
        "id", "name", "artifact_type", "mime_type", "size", "sha256", "runner_id", "run_id", "metadata",
        "created_at", "expires_at",
    )  # fmt: skip
    readonly_fields = fields
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("content")
