"""Runs in admin: status, timings, tokens, the event timeline, and "cancel". Nothing is edited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final
from uuid import UUID

import msgspec
from django.contrib import admin, messages
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from msgspec import Struct
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from agents.actions import cancel_run
from config.database import run_sync
from conversations import events
from conversations.admin import FoundById, ReadOnly
from conversations.events import RunEvent
from conversations.models import LIVE, EventBatch, Run, RunStatus

_TIMELINE_LIMIT: Final = 400
_SHOWN_TEXT: Final = 600


class TimelineRow(Struct, frozen=True):
    """What happened, when, and what it said; consecutive deltas are one row."""

    seqs: str
    type: str
    at_ms: int
    said: str


@admin.register(Run)
class RunAdmin(FoundById, ReadOnly, ModelAdmin):  # type: ignore[misc]
    """Runs, newest first."""

    list_display = (
        "begun",
        "short_id",
        "status_label",
        "model",
        "owner",
        "queue_ms",
        "first_token_ms",
        "total_ms",
        "output_tokens",
        "error_code",
    )
    list_select_related: ClassVar = ["owner"]
    list_filter: ClassVar = ["status", "dialect", "model", "created_at"]
    search_fields: ClassVar = ["=id", "=thread__id", "=request_id", "owner__username"]
    ordering = ("-created_at",)
    show_full_result_count = False
    list_per_page = 50
    change_form_after_template = "admin/conversations/run/timeline.html"
    actions_detail: ClassVar = ["cancel"]
    readonly_fields = ("queue_ms", "first_token_ms", "total_ms", "thread_link")
    fieldsets: ClassVar = [
        (
            None,
            {
                "fields": (
                    ("status", "error_code"),
                    ("queue_ms", "first_token_ms", "total_ms"),
                    ("input_tokens", "output_tokens", "attempt"),
                )
            },
        ),
        ("Who and where", {"fields": ("model", "owner", "thread_link"), "classes": ("tab",)}),
        (
            "Answer",
            {
                "fields": (
                    ("provider", "finish_reason"),
                    "resolved_model",
                    "endpoint_id",
                    ("cached_tokens", "reasoning_tokens"),
                    "prompt_versions",
                ),
                "classes": ("tab",),
            },
        ),
        (
            "Execution",
            {
                "fields": (
                    ("created_at", "started_at"),
                    ("first_token_at", "finished_at"),
                    ("deadline_at", "cancel_requested_at"),
                    ("lease_until", "fence"),
                    "worker",
                    "error_message",
                ),
                "classes": ("tab",),
            },
        ),
        ("Request", {"fields": ("id", "request_id", "dialect", "request"), "classes": ("tab",)}),
    ]

    @admin.display(description="Created", ordering="created_at")
    def begun(self, run: Run) -> str:
        return timezone.localtime(run.created_at).strftime("%Y-%m-%d %H:%M:%S")

    @admin.display(description="Run", ordering="id")
    def short_id(self, run: Run) -> str:
        return format_html('<code title="{}">…{}</code>', run.id.hex, run.id.hex[-8:])

    @display(  # type: ignore[untyped-decorator]
        description="Status",
        ordering="status",
        label={
            RunStatus.COMPLETED: "success",
            RunStatus.FAILED: "danger",
            RunStatus.CANCELLED: "warning",
            RunStatus.RUNNING: "info",
        },
    )
    def status_label(self, run: Run) -> tuple[str, str]:
        return run.status, run.get_status_display()

    @admin.display(description="Queue ms")
    def queue_ms(self, run: Run) -> int | None:
        return _between(run.created_at, run.started_at)

    @admin.display(description="First token ms")
    def first_token_ms(self, run: Run) -> int | None:
        return _between(run.created_at, run.first_token_at)

    @admin.display(description="Total ms")
    def total_ms(self, run: Run) -> int | None:
        return _between(run.created_at, run.finished_at)

    @admin.display(description="Thread")
    def thread_link(self, run: Run) -> str:
        url = reverse("admin:conversations_thread_change", args=[run.thread_id])
        return format_html('<a class="text-primary-600 underline" href="{}">{}</a>', url, run.thread_id)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        shown = {"timeline": timeline(run_id)} if (run_id := _run_id(object_id)) else {}
        response: HttpResponse = super().changeform_view(
            request, object_id, form_url, (extra_context or {}) | shown
        )
        return response

    @action(description="Cancel run", url_path="cancel", permissions=["cancel"])  # type: ignore[untyped-decorator]
    def cancel(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask first (GET), then cancel (POST): a link must not end a run."""
        run_id = _run_id(object_id)
        run = Run.objects.select_related("owner").filter(pk=run_id).first() if run_id else None
        if run is None:
            raise Http404
        if run.status in LIVE and request.method != "POST":
            shown = self.admin_site.each_context(request) | {"run": run, "title": "Cancel run"}
            return TemplateResponse(request, "admin/conversations/run/confirm_cancel.html", shown)
        if run.status not in LIVE:
            messages.info(request, "The run has ended already.")
        else:
            run_sync(cancel_run(run.id))
            messages.success(request, "Cancelling: the run ends within two seconds.")
        return HttpResponseRedirect(reverse("admin:conversations_run_change", args=[object_id]))

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        """Offer to cancel only what still runs."""
        run_id = _run_id(object_id)
        if run_id is None or not Run.objects.filter(pk=run_id, status__in=LIVE).exists():
            return []
        found: list[Any] = super().get_actions_detail(request, object_id)
        return found

    def has_cancel_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return request.user.is_active and request.user.has_perm("conversations.change_run")


def _run_id(text: str | None) -> UUID | None:
    """The run that an address names; None where it is no run's id at all."""
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


def _between(begin: Any, end: Any) -> int | None:
    return max(0, round((end - begin).total_seconds() * 1000)) if begin and end else None


def timeline(run_id: UUID) -> list[TimelineRow]:
    """The run's events for reading, deltas of one message joined; cut off past a limit."""
    batches = EventBatch.objects.filter(run_id=run_id).annotate(body=Cast("events", TextField()))
    stored = batches.order_by("first_seq").values_list("first_seq", "body")[:_TIMELINE_LIMIT]
    some = [event for first_seq, body in stored for event in events.decode(first_seq, body)]
    return list(_rows(some))


def _rows(some: list[RunEvent]) -> Iterable[TimelineRow]:
    begun = some[0].at if some else 0
    joined: list[RunEvent] = []
    for event in some:
        if joined and type(event.fact) is not type(joined[0].fact):
            yield _row(joined, begun)
            joined = []
        if not isinstance(event.fact, events.MessageDelta | events.ReasoningDelta) and joined:
            yield _row(joined, begun)
            joined = []
        joined.append(event)
    if joined:
        yield _row(joined, begun)


def _row(joined: list[RunEvent], begun: int) -> TimelineRow:
    first, last = joined[0], joined[-1]
    seqs = str(first.seq) if first.seq == last.seq else f"{first.seq}–{last.seq}"
    said = "".join(event.fact.text for event in joined if hasattr(event.fact, "text"))
    if not said:
        facts = msgspec.to_builtins(first.fact)
        said = msgspec.json.encode({name: facts[name] for name in facts if name != "type"}).decode()
    return TimelineRow(seqs, first.type, first.at - begun, said[:_SHOWN_TEXT])
