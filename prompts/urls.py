"""Under /api/v1/llm/."""

from django.urls import path

from prompts import views

urlpatterns = [path("models", views.Models.as_view(), name="llm-models")]
