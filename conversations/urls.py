"""The addresses of what happened."""

from django.urls import path

from conversations.views import HistoryView

urlpatterns = [path("agent/history", HistoryView.as_view())]
