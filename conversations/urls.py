"""The addresses of what happened."""

from django.urls import path

from conversations import artifact_views, attachment_views, feedback_views, metrics_views, views

urlpatterns = [
    path("agent/artifacts/<str:artifact_id>", artifact_views.artifact),
    path("agent/attachments", attachment_views.upload),
    path("agent/history", views.history_day),
    path("agent/history/search", views.history_search),
    path("agent/threads", views.thread_list),
    path("metrics/<str:sheet>", metrics_views.metrics),
    path("agent/runs/<str:run_id>/feedback", feedback_views.run_feedback),
]
