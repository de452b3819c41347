"""The addresses of stored files, in the form of Supabase's storage (seed 001)."""

from django.urls import path

from conversations.api.attachments import download

urlpatterns = [path("object/sign/<str:bucket>/<path:path>", download)]
