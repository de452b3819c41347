"""The exercise library in admin; the search finds a saved exercise within two seconds.

Apps keep a copy of the last published version; the button above the list publishes.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.postgres.fields import ArrayField
from django.db.models import Field
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from agents.models import Exercise, LibraryVersion
from agents.tools.exercises.file_items import BadExercises, read_media
from agents.tools.exercises.library_versions import publish
from config.staff.list_field import LINES
from config.staff.lists import ModelAdmin
from config.staff.staff_pages import ReadOnly
from prompts.admin.forms import get_staff

_CHANGES = ("added", "updated", "deleted")


class ExerciseForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form of an exercise."""

    def clean_media(self) -> dict[str, Any]:
        """Return the pictures in a form that clients can show."""
        try:
            return read_media(self.cleaned_data["media"] or {})
        except BadExercises as problem:
            raise forms.ValidationError(str(problem)) from None


@admin.register(Exercise)
class ExerciseAdmin(ModelAdmin):
    """The pages of exercises, with the aliases by which people search for them."""

    form = ExerciseForm
    formfield_overrides = LINES
    list_display = ("name", "name_en", "muscle_group", "category", "difficulty", "source", "updated_at")
    list_filter = ("muscle_group", "category", "difficulty", "source")
    search_fields = ("name", "name_en", "aliases")
    search_help_text = "Names in any language, and aliases"
    readonly_fields = ("id", "created_at", "updated_at")
    fieldsets: ClassVar = [
        (None, {"fields": ("name", "name_en", "aliases", "description", "description_en")}),
        (
            "What it trains",
            {"fields": ("muscle_group", "target_muscles", "secondary_muscles", "category", "tags")},
        ),
        ("What it takes", {"fields": ("equipment", "difficulty", "default_sets", "default_reps")}),
        ("How it is done", {"fields": ("steps", "tips", "media")}),
        (
            "Where it comes from",
            {"fields": ("source", "is_official", "is_custom", "id", "created_at", "updated_at")},
        ),
    ]

    actions_list = ("publish_library",)

    @action(  # type: ignore[untyped-decorator]
        description="Publish to apps…", url_path="publish", permissions=["change"]
    )
    def publish_library(self, request: HttpRequest) -> HttpResponse:
        """Ask for confirmation (GET), then publish the library as it stands (POST)."""
        newest = LibraryVersion.objects.defer("content").first()
        if request.method != "POST":
            template = "admin/agents/exercise/confirm_publish.html"
            title = "Publish the exercise library"
            return self.render_page(request, template, title=title, newest=newest)
        made = publish(by=get_staff(request))
        if newest is not None and newest.number == made.number:
            self.message_user(request, f"Version {made.number} says the same: nothing to publish.")
        else:
            self.message_user(request, f"Version {made.number} is published: {_changes(made)}.")
        return HttpResponseRedirect(reverse("admin:agents_exercise_changelist"))

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        if isinstance(db_field, ArrayField) and db_field.base_field.choices:
            return forms.MultipleChoiceField(
                choices=db_field.base_field.choices,
                required=False,
                label=str(db_field.verbose_name).capitalize(),
                widget=UnfoldAdminCheckboxSelectMultipleWidget,
            )
        return super().formfield_for_dbfield(db_field, request, **kwargs)


@admin.register(LibraryVersion)
class LibraryVersionAdmin(ReadOnly, ModelAdmin):
    """The published versions: their times, authors and changes; nothing here can be edited."""

    list_display = ("number", "published_at", "published_by", "total", "shown_changes", "note")
    fields = ("number", "published_at", "published_by", "note", "total", "checksum", *_CHANGES)
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("published_by").defer("content")

    @admin.display(description="Changes")
    def shown_changes(self, version: LibraryVersion) -> str:
        return _changes(version)


def _changes(version: LibraryVersion) -> str:
    return ", ".join(f"{len(getattr(version, kind))} {kind}" for kind in _CHANGES)
