"""The URL configuration of all apps."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from agents.urls import chat_urlpatterns, foreign_urlpatterns
from config.auth.views import SignIn
from config.http import pages
from config.openapi.views import APIDocs, OpenAPIDocument
from conversations.api.prometheus import prometheus

urlpatterns = [
    path("api/v1/", include("agents.urls")),  # first, because most requests are for a run
    path("", pages.home),
    path("health", pages.health),
    path("ready", pages.ready),
    path("metrics", prometheus),
    path("admin/login/", pages.admin_login),
    path("admin/", admin.site.urls),
    path("api/docs/", APIDocs.as_view()),
    path("api/schema/", OpenAPIDocument.as_view(), name="schema"),
    path("api/v1/schemas/<str:name>", pages.contract_schema),
    path("api/v1/auth/token", SignIn.as_view(), name="sign-in"),
    path("api/v1/llm/", include("prompts.urls")),
    path("api/v1/", include("conversations.urls")),
    path("chat/", include(chat_urlpatterns)),
    path("", include(foreign_urlpatterns)),
    path("storage/v1/", include("conversations.storage_urls")),
]

handler400 = "config.http.pages.bad_request"
handler403 = "config.http.pages.forbidden"
handler404 = "config.http.pages.not_found"
handler500 = "config.http.pages.server_error"
