"""Approvals in admin: the list of calls, and a page to approve (with other arguments) or refuse one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminTextareaWidget

from agents.intake import resume
from agents.intake.approvals import LONGEST_REASON, Decision
from config.database import run_sync
from config.errors import ParleyError
from config.staff.lists import LargeList, ModelAdmin, newest, newest_filter
from config.staff.staff_pages import ReadOnly
from conversations.admin.content_pages import record_access
from conversations.admin.filters import DayFilter
from conversations.identifiers import lowest_uuid7, uuid_of
from conversations.models import Interrupt, InterruptStatus


class DecisionForm(forms.Form):
    """The arguments with which a call is made, and the reason for a refusal."""

    arguments = forms.JSONField(widget=UnfoldAdminTextareaWidget(attrs={"rows": 8}))
    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="The model is told why a call was refused.",
    )

    def clean_arguments(self) -> dict[str, Any]:
        """Return the arguments, which must be an object, as every tool takes."""
        arguments: Any = self.cleaned_data["arguments"]
        if not isinstance(arguments, dict):
            raise forms.ValidationError("The arguments must be a JSON object.")
        return arguments


class CreatedFilter(DayFilter):
    """A filter from one day to another by the ids, whose leading bits are the time."""

    def condition(self, lookup: str, at: datetime) -> Q:
        return Q(**{f"pk__{lookup}": lowest_uuid7(at)})


class StatusFilter(DropdownFilter):  # type: ignore[misc]
    """A filter by status, among the newest approvals."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: Any, model_admin: Any) -> Iterable[tuple[str, str]]:
        return InterruptStatus.choices

    def queryset(self, request: Any, queryset: QuerySet[Interrupt]) -> QuerySet[Interrupt]:
        value = self.value()
        if value == InterruptStatus.PENDING:
            return queryset.filter(status=value)
        return newest(queryset, LargeList.NEWEST).filter(status=value) if value else queryset


@admin.register(Interrupt)
class InterruptAdmin(ReadOnly, LargeList, ModelAdmin):
    """Tool calls that wait, or waited, for approval, newest first."""

    list_display = ("created_at", "tool_name", "status_label", "owner", "expires_at", "decided_by")
    list_filter: ClassVar = [
        StatusFilter,
        newest_filter("tool_name", "tool"),
        ("created_at", CreatedFilter),
    ]
    list_filter_submit = True
    found_by = ("id", "run_id", "thread_id")
    looked_through = ("tool_name",)
    owned_by = "owner"
    search_help_text = "An id of approval, run or conversation, a tool, or how a user's name begins"
    ordering = ("-id",)
    sortable_by = ()
    actions_detail: ClassVar = ["decide"]
    fields = (
        ("tool_name", "status"),
        "arguments",
        "edited_arguments",
        ("created_at", "expires_at"),
        ("decided_at", "decided_by"),
        "decision_reason",
        ("id", "owner"),
        ("run_id", "told_run_id"),
    )
    readonly_fields = ("run_id", "told_run_id")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("owner", "decided_by")

    @display(  # type: ignore[untyped-decorator]
        description="Status",
        ordering="status",
        label={
            InterruptStatus.APPROVED: "success",
            InterruptStatus.REFUSED: "danger",
            InterruptStatus.PENDING: "info",
        },
    )
    def status_label(self, interrupt: Interrupt) -> tuple[str, str]:
        status = InterruptStatus(interrupt.status)
        if status == InterruptStatus.PENDING and interrupt.expires_at <= timezone.now():
            status = InterruptStatus.EXPIRED
        return status, str(status.label)

    @action(description="Approve or refuse…", url_path="decide", permissions=["decide"])  # type: ignore[untyped-decorator]
    def decide(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the call (GET), then decide (POST)."""
        interrupt = get_object_or_404(Interrupt, pk=uuid_of(object_id))
        form = DecisionForm(request.POST or None, initial={"arguments": interrupt.arguments})
        if request.method == "POST" and form.is_valid():
            approve = "approve" in request.POST
            entered = form.cleaned_data
            decision = Decision(approve, entered["arguments"] if approve else None, entered["reason"])
            try:
                run_sync(
                    resume.decide(interrupt.pk, decision, by=UUID(str(request.user.pk)), owner_id=None)
                )
            except ParleyError as refusal:
                form.add_error(None, refusal.detail)
            else:
                record_access("approved" if approve else "refused", interrupt)
                messages.success(request, "Approved." if approve else "Refused.")
                return HttpResponseRedirect(
                    reverse("admin:conversations_interrupt_change", args=[object_id])
                )
        template, title = "admin/conversations/interrupt/decide.html", "Approve or refuse a tool call"
        return self.render_page(request, template, title=title, interrupt=interrupt, form=form)

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        """Return the actions: only a pending call can be decided."""
        found: list[Any] = super().get_actions_detail(request, object_id)
        row_id = uuid_of(object_id)
        pending = Interrupt.objects.filter(status=InterruptStatus.PENDING)
        return found if row_id and pending.filter(pk=row_id).exists() else []

    def has_decide_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return request.user.is_active and request.user.has_perm("conversations.change_interrupt")
