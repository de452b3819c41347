"""The addresses of what happened."""

from django.urls import path

from conversations.api import artifacts, attachments, feedback, metrics, threads

urlpatterns = [
    path("agent/artifacts/<str:artifact_id>", artifacts.artifact),
    path("agent/attachments", attachments.upload),
    path("agent/history", threads.history_day),
    path("agent/history/search", threads.history_search),
    path("agent/threads", threads.thread_list),
    path("metrics/<str:sheet>", metrics.metrics),
    path("agent/runs/<str:run_id>/feedback", feedback.run_feedback),
]
