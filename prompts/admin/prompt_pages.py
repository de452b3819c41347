"""Further pages of a prompt: comparison, activation, labels, split, preview, export and import."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminFileFieldWidget, UnfoldAdminIntegerFieldWidget

from config.errors import InvalidRequest
from config.staff.lists import ModelAdmin
from prompts.admin.forms import get_staff
from prompts.admin.previewing import preview
from prompts.models import Prompt, PromptVersion
from prompts.wordings import file_format, releases, staff_actions
from prompts.wordings.wording_diff import compare

LABELS: Final = ("production", "staging")
_LONGEST_FIELD: Final = 400_000
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]+")


class SplitForm(forms.Form):
    """The other version of a split, and its share of 100 threads."""

    version = forms.IntegerField(
        label="Other version",
        min_value=1,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="The version number, without the v.",
    )
    percent = forms.IntegerField(
        label="Share",
        min_value=1,
        max_value=99,
        initial=10,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="So many of 100 threads get this version; the others get the active one.",
    )


class ImportForm(forms.Form):
    """A file of prompts."""

    file = forms.FileField(
        label="File",
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".json,.md,.txt"}),
        help_text="An exported JSON file, or Markdown or text with one wording.",
    )


class PromptPages(ModelAdmin):
    """The further pages of `PromptAdmin`."""

    def get_urls(self) -> list[URLPattern]:
        pages = {
            "preview": ("preview/", self.preview_view),
            "compare": ("<path:object_id>/compare/", self.compare_view),
            "labels": ("<path:object_id>/labels/", self.label_view),
            "split": ("<path:object_id>/split/", self.split_view),
            "json": ("<path:object_id>/export.json", self.json_view),
            "markdown": ("<path:object_id>/versions/<int:number>.md", self.markdown_view),
            "activation": ("<path:object_id>/versions/<int:number>/activate/", self.activation_view),
            "deactivation": ("<path:object_id>/deactivate/", self.deactivation_view),
        }
        wrap = self.admin_site.admin_view
        own = [
            path(route, wrap(view), name=f"prompts_prompt_{name}")
            for name, (route, view) in pages.items()
        ]
        return own + super().get_urls()  # type: ignore[no-any-return]

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """Return the effective system message with this wording, as JSON for the editor."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        content, kind, tools, context = (
            request.POST.get(name, "")[:_LONGEST_FIELD]
            for name in ("content", "kind", "tools", "context")
        )
        return JsonResponse(preview(content, kind=kind, tools=tools, context=context))

    def compare_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show two versions side by side; by default the newest two."""
        prompt = self._get_visible(request, object_id)
        newest = prompt.versions.latest("number").number if prompt.versions.exists() else 0
        right = parse_number(request.GET.get("b", "")) or newest
        left = parse_number(request.GET.get("a", "")) or max(1, right - 1)
        versions = prompt.versions.select_related("author")
        before, after = (get_object_or_404(versions, number=number) for number in (left, right))
        return self.render_page(
            request,
            "prompts/compare.html",
            prompt=prompt,
            title=f"{prompt.name}: v{left} and v{right}",
            before=before,
            after=after,
            newest=newest,
            wording=compare(before.content, after.content),
            tools=compare(_format_tools(before), _format_tools(after)),
        )

    def label_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Move a label to a version, or remove it."""
        prompt = self._get_changeable(request, object_id)
        if request.method != "POST":
            raise PermissionDenied
        name = str(request.POST.get("label", "")).strip().lower()[:100]
        if "remove" in request.POST:
            releases.remove_label(prompt, name, by=get_staff(request))
            return self._redirect(request, prompt, f"The label {name} is removed.")
        number = parse_number(str(request.POST.get("version", "")))
        version = prompt.versions.filter(number=number).first()
        if version is None:
            return self._redirect(request, prompt, "There is no version of this number.", messages.ERROR)
        try:
            releases.move_label(prompt, name, version, by=get_staff(request))
        except InvalidRequest as refused:
            return self._redirect(request, prompt, refused.detail, messages.ERROR)
        return self._redirect(request, prompt, f"The label {name} now points to version {number}.")

    def split_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Split a prompt between two versions, or end the split, after a confirmation."""
        prompt = self._get_changeable(request, object_id)
        if request.method == "POST" and "end" in request.POST:
            releases.end_split(prompt, by=get_staff(request))
            return self._redirect(request, prompt, "Every thread gets the active version again.")
        form = SplitForm(_get_post(request), initial=_initial_split(request, prompt))
        if request.method == "POST" and form.is_valid():
            share = form.cleaned_data
            try:
                version = prompt.versions.get(number=share["version"])
                releases.split(prompt, version, share["percent"], by=get_staff(request))
            except PromptVersion.DoesNotExist:
                form.add_error("version", "There is no version of this number.")
            except InvalidRequest as refused:
                form.add_error(None, refused.detail)
            else:
                sentence = f"{share['percent']} of 100 threads get version {version.number}."
                return self._redirect(request, prompt, sentence)
        title = f"Split {prompt.name} between two versions"
        return self.render_page(request, "prompts/split.html", prompt=prompt, form=form, title=title)

    def activation_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        """Activate this version after a confirmation."""
        prompt = self._get_changeable(request, object_id)
        version = get_object_or_404(prompt.versions, number=number)
        if request.method != "POST":
            in_use = Prompt.objects.filter(kind=prompt.kind, is_active=True)
            current = prompt.active_version if prompt.is_active else None
            return self.render_page(
                request,
                "prompts/confirm.html",
                prompt=prompt,
                title=f"Activate version {number}",
                version=version,
                replaced=in_use.select_related("active_version").first(),
                wording=compare(current.content if current else version.content, version.content),
            )
        staff_actions.activate_version(version, by=get_staff(request))
        return self._redirect(
            request, prompt, f"Version {number} is active; runs that start now use it."
        )

    def deactivation_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Deactivate the prompt after a confirmation."""
        prompt = self._get_changeable(request, object_id)
        if request.method != "POST":
            return self.render_page(request, "prompts/confirm.html", prompt=prompt, title="Deactivate")
        staff_actions.deactivate(prompt, by=get_staff(request))
        return self._redirect(request, prompt, f"{prompt.name} is no longer in use.")

    def json_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Download the prompt with all its versions and labels."""
        prompt = self._get_visible(request, object_id)
        return self._export(_query_exported().filter(pk=prompt.pk), _file_name(prompt.name))

    def markdown_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        """Download one version as Markdown."""
        prompt = self._get_visible(request, object_id)
        get_object_or_404(prompt.versions, number=number)
        (filed,) = file_format.export_prompts(_query_exported().filter(pk=prompt.pk)).prompts
        (version,) = (version for version in filed.versions if version.number == number)
        name = f"{_file_name(prompt.name)}.v{number}.md"
        return _download(file_format.to_markdown(filed, version), name, "text/markdown; charset=utf-8")

    @action(description="Export all", url_path="export", permissions=["view"])  # type: ignore[untyped-decorator]
    def export_all(self, request: HttpRequest) -> HttpResponse:
        return self._export(_query_exported(), "prompts")

    @action(description="Export as a file")  # type: ignore[untyped-decorator]
    def export_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse:
        return self._export(_query_exported().filter(pk__in=queryset.values("pk")), "prompts")

    @action(description="Import…", url_path="import", permissions=["add"])  # type: ignore[untyped-decorator]
    def import_file(self, request: HttpRequest) -> HttpResponse:
        """Import a file and report the result; imported versions are not activated."""
        form = ImportForm(_get_post(request), request.FILES)
        if request.method == "POST" and form.is_valid():
            uploaded = form.cleaned_data["file"]
            try:
                raw = uploaded.read(file_format.LARGEST_FILE + 1)
                results = file_format.import_prompts(
                    file_format.parse(raw, filename=uploaded.name or ""), by=get_staff(request)
                )
            except InvalidRequest as refused:
                form.add_error("file", refused.detail)
            else:
                for result in results:
                    self.message_user(request, _describe_import(result), messages.SUCCESS)
                return HttpResponseRedirect(reverse("admin:prompts_prompt_changelist"))
        return self.render_page(request, "prompts/import.html", form=form, title="Import prompts")

    def _export(self, prompts: Any, name: str) -> HttpResponse:
        return _download(
            file_format.to_json(file_format.export_prompts(prompts)), f"{name}.json", "application/json"
        )

    def _get_visible(self, request: HttpRequest, object_id: str) -> Prompt:
        found = Prompt.objects.select_related("active_version", "split_version", "previous_version")
        prompt = get_object_or_404(found, deleted_at=None, pk=parse_number(unquote(object_id)))
        if not self.has_view_permission(request, prompt):
            raise PermissionDenied
        return prompt

    def _get_changeable(self, request: HttpRequest, object_id: str) -> Prompt:
        prompt = self._get_visible(request, object_id)
        if not self.has_change_permission(request, prompt):
            raise PermissionDenied
        return prompt

    def _redirect(
        self, request: HttpRequest, prompt: Prompt, sentence: str, level: int = messages.SUCCESS
    ) -> HttpResponse:
        if level == messages.SUCCESS:
            self.log_change(request, prompt, sentence)
        self.message_user(request, sentence, level)
        return HttpResponseRedirect(reverse("admin:prompts_prompt_change", args=[prompt.pk]))


def _get_post(request: HttpRequest) -> Any:
    return request.POST if request.method == "POST" else None


def _query_exported() -> Any:
    """Return a query of the prompts with the data of a file; it takes three statements in total."""
    versions = PromptVersion.objects.select_related("author").order_by("number")
    return (
        Prompt.objects.filter(deleted_at=None, versions__isnull=False)
        .distinct()
        .order_by("kind", "name")
        .prefetch_related(Prefetch("versions", queryset=versions), "labels")
    )


def _initial_split(request: HttpRequest, prompt: Prompt) -> dict[str, int]:
    if prompt.split_version is not None:
        return {"version": prompt.split_version.number, "percent": prompt.split_percent}
    requested = parse_number(request.GET.get("version", ""))
    newest = prompt.versions.exclude(pk=prompt.active_version_id or 0).order_by("-number").first()
    return {"version": requested or (newest.number if newest else 1), "percent": 10}


def _describe_import(result: file_format.ImportResult) -> str:
    if not result.versions:
        return f"{result.name}: no new versions."
    versions = f"{result.versions} version{'' if result.versions == 1 else 's'}"
    return f"{result.name}: {f'created with {versions}' if result.created else f'{versions} added'}."


def _format_tools(version: PromptVersion) -> str:
    if version.tools_json is None:
        return ""
    return json.dumps(version.tools_json, ensure_ascii=False, indent=2)


def _download(body: bytes, name: str, kind: str) -> HttpResponse:
    return HttpResponse(
        body,
        content_type=kind,
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


def _file_name(name: str) -> str:
    return _UNFIT.sub("-", name).strip("-")[:80] or "prompt"


def parse_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else 0
