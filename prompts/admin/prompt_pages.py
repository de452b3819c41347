"""The pages beside a prompt's form: compare two versions, move labels, split, preview, files."""

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
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminFileFieldWidget, UnfoldAdminIntegerFieldWidget

from config.errors import InvalidRequest
from prompts import files, releases
from prompts.admin.forms import staff
from prompts.admin.previewing import preview
from prompts.comparing import compare
from prompts.models import Prompt, PromptVersion

LABELS: Final = ("production", "staging")
_LONGEST_FIELD: Final = 400_000
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]+")


class SplitForm(forms.Form):
    """Which other version, and for how many of 100 threads."""

    version = forms.IntegerField(
        label="Other version",
        min_value=1,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="Its number, without the v.",
    )
    percent = forms.IntegerField(
        label="Its share",
        min_value=1,
        max_value=99,
        initial=10,
        widget=UnfoldAdminIntegerFieldWidget(),
        help_text="Of 100 threads so many get it; the others get the active version.",
    )


class ImportForm(forms.Form):
    """A file of prompts."""

    file = forms.FileField(
        label="File",
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".json,.md,.txt"}),
        help_text="JSON as it was exported, or Markdown or text with one wording.",
    )


class PromptPages:
    """What `PromptAdmin` adds to admin's own pages."""

    admin_site: Any
    opts: Any
    media: Any
    has_view_permission: Any
    has_change_permission: Any
    has_add_permission: Any
    message_user: Any
    log_change: Any

    def own_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("preview/", wrap(self.preview_view), name="prompts_prompt_preview"),
            path("<path:object_id>/compare/", wrap(self.compare_view), name="prompts_prompt_compare"),
            path("<path:object_id>/labels/", wrap(self.label_view), name="prompts_prompt_labels"),
            path("<path:object_id>/split/", wrap(self.split_view), name="prompts_prompt_split"),
            path("<path:object_id>/export.json", wrap(self.json_view), name="prompts_prompt_json"),
            path(
                "<path:object_id>/versions/<int:number>.md",
                wrap(self.markdown_view),
                name="prompts_prompt_markdown",
            ),
        ]

    # --- look ---------------------------------------------------------------------------------------

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """The effective system message with this wording in its place, as JSON for the editor."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        given = request.POST
        shown = preview(
            str(given.get("content", ""))[:_LONGEST_FIELD],
            kind=str(given.get("kind", "")),
            tools=str(given.get("tools", ""))[:_LONGEST_FIELD],
            context=str(given.get("context", ""))[:_LONGEST_FIELD],
        )
        return JsonResponse(shown)

    def compare_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Two versions side by side; without numbers the newest and the one before it."""
        prompt = self._seen(request, object_id)
        newest = prompt.versions.latest("number").number if prompt.versions.exists() else 0
        right = _number(request.GET.get("b", "")) or newest
        left = _number(request.GET.get("a", "")) or max(1, right - 1)
        versions = prompt.versions.select_related("author")
        before, after = (get_object_or_404(versions, number=number) for number in (left, right))
        return self._page(
            request,
            "prompts/compare.html",
            prompt=prompt,
            title=f"{prompt.name}: v{left} and v{right}",
            before=before,
            after=after,
            newest=newest,
            wording=compare(before.content, after.content),
            tools=compare(_tools(before), _tools(after)),
        )

    # --- releases -----------------------------------------------------------------------------------

    def label_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Move a label to a version, or take it away."""
        prompt = self._changed(request, object_id)
        name = str(request.POST.get("label", "")).strip().lower()[:100]
        if "remove" in request.POST:
            releases.remove_label(prompt, name, by=staff(request))
            return self._said(request, prompt, f"The label {name} is gone.")
        number = _number(str(request.POST.get("version", "")))
        version = prompt.versions.filter(number=number).first()
        if version is None:
            return self._said(request, prompt, "There is no version of this number.", messages.ERROR)
        try:
            releases.move_label(prompt, name, version, by=staff(request))
        except InvalidRequest as refused:
            return self._said(request, prompt, refused.detail, messages.ERROR)
        return self._said(request, prompt, f"{name} is version {number} now.")

    def split_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then give a second version to a share of the threads, or end that."""
        prompt = self._seen(request, object_id)
        if not self.has_change_permission(request, prompt):
            raise PermissionDenied
        if request.method == "POST" and "end" in request.POST:
            releases.end_split(prompt, by=staff(request))
            return self._said(request, prompt, "Every thread gets the active version again.")
        form = SplitForm(_posted(request), initial=_initial_split(request, prompt))
        if request.method == "POST" and form.is_valid():
            share = form.cleaned_data
            try:
                version = prompt.versions.get(number=share["version"])
                releases.split(prompt, version, share["percent"], by=staff(request))
            except PromptVersion.DoesNotExist:
                form.add_error("version", "There is no version of this number.")
            except InvalidRequest as refused:
                form.add_error(None, refused.detail)
            else:
                sentence = f"Version {version.number} goes to {share['percent']} of 100 threads."
                return self._said(request, prompt, sentence)
        title = f"Split {prompt.name} between two versions"
        return self._page(request, "prompts/split.html", prompt=prompt, form=form, title=title)

    # --- files --------------------------------------------------------------------------------------

    def json_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The prompt with all its versions and labels."""
        prompt = self._seen(request, object_id)
        return self._exported(_whole().filter(pk=prompt.pk), _file_name(prompt.name))

    def markdown_view(self, request: HttpRequest, object_id: str, number: int) -> HttpResponse:
        """One wording."""
        prompt = self._seen(request, object_id)
        get_object_or_404(prompt.versions, number=number)
        (filed,) = files.filed(_whole().filter(pk=prompt.pk)).prompts
        (version,) = (version for version in filed.versions if version.number == number)
        name = f"{_file_name(prompt.name)}.v{number}.md"
        return _download(files.to_markdown(filed, version), name, "text/markdown; charset=utf-8")

    @action(description="Export all", url_path="export", permissions=["view"])  # type: ignore[untyped-decorator]
    def export_all(self, request: HttpRequest) -> HttpResponse:
        return self._exported(_whole(), "prompts")

    @action(description="Export as a file")  # type: ignore[untyped-decorator]
    def export_selected(self, request: HttpRequest, queryset: Any) -> HttpResponse:
        return self._exported(_whole().filter(pk__in=queryset.values("pk")), "prompts")

    @action(description="Import…", url_path="import", permissions=["add"])  # type: ignore[untyped-decorator]
    def import_file(self, request: HttpRequest) -> HttpResponse:
        """Take a file, say what came of it; nothing of it is in use until it is activated."""
        form = ImportForm(_posted(request), request.FILES)
        if request.method == "POST" and form.is_valid():
            uploaded = form.cleaned_data["file"]
            try:
                raw = uploaded.read(files.LARGEST_FILE + 1)
                brought = files.bring_in(
                    files.read(raw, filename=uploaded.name or ""), by=staff(request)
                )
            except InvalidRequest as refused:
                form.add_error("file", refused.detail)
            else:
                for one in brought:
                    self.message_user(request, _came_of(one), messages.SUCCESS)
                return HttpResponseRedirect(reverse("admin:prompts_prompt_changelist"))
        return self._page(request, "prompts/import.html", form=form, title="Import prompts")

    def _exported(self, prompts: Any, name: str) -> HttpResponse:
        return _download(files.to_json(files.filed(prompts)), f"{name}.json", "application/json")

    # --- shared -------------------------------------------------------------------------------------

    def _seen(self, request: HttpRequest, object_id: str) -> Prompt:
        found = Prompt.objects.select_related("active_version", "split_version", "previous_version")
        prompt = get_object_or_404(found, deleted_at=None, pk=_number(unquote(object_id)))
        if not self.has_view_permission(request, prompt):
            raise PermissionDenied
        return prompt

    def _changed(self, request: HttpRequest, object_id: str) -> Prompt:
        """The prompt that a POST may change."""
        prompt = self._seen(request, object_id)
        if request.method != "POST" or not self.has_change_permission(request, prompt):
            raise PermissionDenied
        return prompt

    def _page(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        site = self.admin_site.each_context(request)
        return TemplateResponse(
            request, template, site | {"opts": self.opts, "media": self.media} | context
        )

    def _said(
        self, request: HttpRequest, prompt: Prompt, sentence: str, level: int = messages.SUCCESS
    ) -> HttpResponse:
        if level == messages.SUCCESS:
            self.log_change(request, prompt, sentence)
        self.message_user(request, sentence, level)
        return HttpResponseRedirect(reverse("admin:prompts_prompt_change", args=[prompt.pk]))


def _posted(request: HttpRequest) -> Any:
    return request.POST if request.method == "POST" else None


def _whole() -> Any:
    """The prompts with what a file holds of them, in three statements however many there are."""
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
    wanted = _number(request.GET.get("version", ""))
    newest = prompt.versions.exclude(pk=prompt.active_version_id or 0).order_by("-number").first()
    return {"version": wanted or (newest.number if newest else 1), "percent": 10}


def _came_of(one: files.Brought) -> str:
    if not one.published:
        return f"{one.name}: nothing new."
    versions = f"{one.published} version{'' if one.published == 1 else 's'}"
    return f"{one.name}: {'made with ' if one.made else ''}{versions}{'' if one.made else ' published'}."


def _tools(version: PromptVersion) -> str:
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


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else 0
