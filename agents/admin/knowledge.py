"""Knowledge bases in admin: staff upload documents, and runners with a grant for the base find them."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count
from django.http import HttpRequest

from agents.host.actions import knowledge
from agents.knowledge import writing
from agents.knowledge.reading import LARGEST, MIME_TYPES, Unreadable, text_of
from agents.models import KnowledgeBase, KnowledgeDocument
from config.staff.lists import ModelAdmin


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(ModelAdmin):
    """The knowledge bases, which bindings grant by name."""

    list_display = ("name", "documents_count", "chunks_count", "embedding_model", "is_active")
    list_filter = ("is_active",)
    search_fields = ("name", "description")

    def get_queryset(self, request: HttpRequest) -> Any:
        found = super().get_queryset(request)
        return found.annotate(
            documents_total=Count("documents", distinct=True), chunks_total=Count("documents__chunks")
        )

    @admin.display(description="Documents", ordering="documents_total")
    def documents_count(self, base: Any) -> int:
        return int(base.documents_total)

    @admin.display(description="Chunks", ordering="chunks_total")
    def chunks_count(self, base: Any) -> int:
        return int(base.chunks_total)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(knowledge.bases_in_use.clear)
        if obj.embedding_model and not writing.enable_pgvector():
            messages.warning(
                request,
                "This database has no pgvector, so documents are found by words alone. Install the "
                "extension and run CREATE EXTENSION vector as its superuser, then save again.",
            )
        if change and "embedding_model" in form.changed_data:
            for key in obj.documents.values_list("pk", flat=True):  # all their texts might be too large
                writing.store_chunks(obj.documents.get(pk=key))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        transaction.on_commit(knowledge.bases_in_use.clear)


class DocumentForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form of a document: a file to upload, or a text to edit."""

    upload = forms.FileField(
        required=False,
        help_text=f"{', '.join(sorted(MIME_TYPES))}; at most 5 MiB; in place of the text below.",
    )

    class Meta:
        model = KnowledgeDocument
        fields: ClassVar = ["base", "name", "upload", "text"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["text"].required = False
        self.fields["name"].required = False
        self.fields["name"].help_text = "Empty: the uploaded file's name."

    def clean(self) -> None:
        super().clean()
        upload, facts = self.cleaned_data.get("upload"), self.cleaned_data
        if upload is not None:
            facts["name"] = facts.get("name") or upload.name[:200]
            try:
                content = upload.read(LARGEST + 1)
                facts["text"], self.instance.mime_type = text_of(upload.name, content)
            except Unreadable as problem:
                self.add_error("upload", str(problem))
        elif not (facts.get("text") or "").strip():
            self.add_error("upload", "Upload a file, or write the text.")
        if not facts.get("name"):
            self.add_error("name", "Give the document a name.")


@admin.register(KnowledgeDocument)
class KnowledgeDocumentAdmin(ModelAdmin):
    """The documents; saving one cuts it into chunks again."""

    form = DocumentForm
    list_display = ("name", "base", "mime_type", "chunk_count", "created_at")
    list_filter = ("base",)
    list_select_related = ("base",)
    search_fields = ("name",)

    def get_queryset(self, request: HttpRequest) -> Any:
        found = super().get_queryset(request)
        name = (request.resolver_match and request.resolver_match.url_name) or ""
        return found.defer("text") if name.endswith("changelist") else found

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.uploaded_by = request.user
        super().save_model(request, obj, form, change)
        count = writing.store_chunks(obj)
        messages.success(request, f"{obj.name}: {count} chunk{'' if count == 1 else 's'}.")
