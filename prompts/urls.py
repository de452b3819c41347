"""Under /api/v1/llm/."""

from django.urls import path

from prompts import prompt_views, views

urlpatterns = [
    path("models", views.Models.as_view(), name="llm-models"),
    path("app/config", views.AppConfig.as_view()),
    path("prompts", prompt_views.Prompts.as_view()),
    path("prompts/<int:prompt_id>", prompt_views.Prompt.as_view()),
    path("prompts/<int:prompt_id>/activate", prompt_views.Activate.as_view()),
    path("tests/active-agent-prompts", prompt_views.ActiveAgentPrompts.as_view()),
]
