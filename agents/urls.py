"""The addresses of runs. `agent/run` is seed 001's spelling, at which a thread has any name."""

from django.urls import path

from agents import (
    agent_api_views,
    approval_views,
    chat_views,
    completion_views,
    library_views,
    responses_views,
    runner_views,
    staff_views,
    thread_views,
    usage_views,
    views,
)

urlpatterns = [
    path("agent/runs", views.runs),
    path("agent/run", views.run_of_named_thread),
    path("agent/ag-ui", views.ag_ui_runs),
    path("agent/process", agent_api_views.process),
    path("agent/capabilities", thread_views.capabilities),
    path("agent/threads/<str:thread_id>", thread_views.thread),
    path("agent/threads/<str:thread_id>/connect", thread_views.connect),
    path("agent/runs/<str:run_id>", views.run),
    path("agent/runs/<str:run_id>/events", views.events),
    path("agent/runs/<str:run_id>/cancel", views.cancel),
    path("agent/usage", usage_views.usage),
    path("agent/approvals", approval_views.approvals),
    path("agent/approvals/<str:approval_id>", approval_views.approval),
    path("agent/runners", runner_views.runners),
    path("agent/runners/<path:runner_id>/run", runner_views.run),
    path("llm/sse/force-disconnect", staff_views.force_disconnect),
    path("stats/dashboard", staff_views.Dashboard.as_view()),
    path("messages/<str:run_id>/events", views.events),
    path("exercise/library/meta", library_views.meta),
    path("exercise/library/full", library_views.full),
    path("exercise/library/updates", library_views.updates),
    path("admin/exercise/library/publish", library_views.Publish.as_view()),
    path("admin/exercise/library/patch", library_views.Patch.as_view()),
]

# the page for people; it asks the API as any client does
chat_urlpatterns = [
    path("", chat_views.chat, name="chat"),
    path("login/", chat_views.sign_in, name="chat_login"),
    path("logout/", chat_views.sign_out, name="chat_logout"),
    path("token", chat_views.token, name="chat_token"),
]

# where the clients of other servers look, which know of no /api/v1/
foreign_urlpatterns = [
    path("process", agent_api_views.process),
    path("process/task", agent_api_views.tasks),
    path("process/task/<str:task_id>", agent_api_views.task),
    *(
        path(f"{base}{rest}", view)
        for base in ("v1/", "compatible-mode/v1/")
        for rest, view in (
            ("responses", responses_views.create),
            ("responses/<str:response_id>", responses_views.response),
            ("responses/<str:response_id>/input_items", responses_views.input_items),
            ("responses/<str:response_id>/cancel", responses_views.cancel),
            ("chat/completions", completion_views.create),
            ("models", completion_views.models),
            ("models/<path:model_id>", completion_views.model),
        )
    ),
]
