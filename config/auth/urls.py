"""Routes under /api/v1/auth/."""

from django.urls import path

from config.auth.views import SignIn

urlpatterns = [path("token", SignIn.as_view(), name="sign-in")]
