"""The addresses of runs; `agent/run` is seed 001's spelling, where a thread may have any name."""

from django.urls import path

from agents.api import (
    agent_api,
    approvals,
    chat_completions,
    chat_page,
    library,
    responses,
    runners,
    runs,
    staff,
    threads,
    usage,
)

urlpatterns = [
    path("agent/runs", runs.runs),  # this one and the next first: most requests are for them
    path("agent/runs/<str:run_id>/events", runs.events),
    path("agent/run", runs.run_of_named_thread),
    path("agent/ag-ui", runs.ag_ui_runs),
    path("agent/process", agent_api.process),
    path("agent/capabilities", threads.capabilities),
    path("agent/threads/<str:thread_id>", threads.thread),
    path("agent/threads/<str:thread_id>/connect", threads.connect),
    path("agent/runs/<str:run_id>", runs.run),
    path("agent/runs/<str:run_id>/cancel", runs.cancel),
    path("agent/usage", usage.usage),
    path("agent/approvals", approvals.approvals),
    path("agent/approvals/<str:approval_id>", approvals.approval),
    path("agent/runners", runners.runners),
    path("agent/runners/<path:runner_id>/run", runners.run),
    path("llm/sse/force-disconnect", staff.force_disconnect),
    path("stats/dashboard", staff.Dashboard.as_view()),
    path("messages/<str:run_id>/events", runs.events),
    path("exercise/library/meta", library.meta),
    path("exercise/library/full", library.full),
    path("exercise/library/updates", library.updates),
    path("admin/exercise/library/publish", library.Publish.as_view()),
    path("admin/exercise/library/patch", library.Patch.as_view()),
]

# the page for people; it calls the API like any client
chat_urlpatterns = [
    path("", chat_page.chat, name="chat"),
    path("login/", chat_page.sign_in, name="chat_login"),
    path("logout/", chat_page.sign_out, name="chat_logout"),
    path("token", chat_page.token, name="chat_token"),
]

# the addresses that clients of other servers use, without /api/v1/
foreign_urlpatterns = [
    path("process", agent_api.process),
    path("process/task", agent_api.tasks),
    path("process/task/<str:task_id>", agent_api.task),
    *(
        path(f"{base}{rest}", view)
        for base in ("v1/", "compatible-mode/v1/")
        for rest, view in (
            ("responses", responses.create),
            ("responses/input_tokens", responses.absent),
            ("responses/compact", responses.absent),
            ("responses/<str:response_id>", responses.response),
            ("responses/<str:response_id>/input_items", responses.input_items),
            ("responses/<str:response_id>/cancel", responses.cancel),
            ("chat/completions", chat_completions.create),
            ("models", chat_completions.models),
            ("models/<path:model_id>", chat_completions.model),
        )
    ),
]
