"""The addresses of runs. `agent/run` is seed 001's spelling; both work."""

from django.urls import path

from agents import views

urlpatterns = [
    path("agent/runs", views.runs),
    path("agent/run", views.runs),
    path("agent/runs/<str:run_id>", views.run),
    path("agent/runs/<str:run_id>/events", views.events),
    path("agent/runs/<str:run_id>/cancel", views.cancel),
    path("messages/<str:run_id>/events", views.events),
]
