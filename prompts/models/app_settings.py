"""App settings."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class AppSetting(models.Model):
    """The stored value of a setting that staff may change while Parley runs."""

    key = models.CharField(max_length=100, primary_key=True)
    value = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    def __str__(self) -> str:
        return self.key
