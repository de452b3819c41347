"""Routes under /api/v1/llm/."""

from django.urls import path

from prompts.api import models, prompts

urlpatterns = [
    path("models", models.Models.as_view(), name="llm-models"),
    path("app/config", models.AppConfig.as_view()),
    path("prompts", prompts.Prompts.as_view()),
    path("prompts/<int:prompt_id>", prompts.Prompt.as_view()),
    path("prompts/<int:prompt_id>/activate", prompts.Activate.as_view()),
    path("tests/active-agent-prompts", prompts.ActiveAgentPrompts.as_view()),
]
