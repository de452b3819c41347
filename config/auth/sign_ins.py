"""Audit entries of successful and refused sign-ins, and a log line per refusal.

Entries of accounts that are not staff contain only the id, because accounts can be erased and the
audit log cannot. Unknown names are never logged: they may be a password in the wrong field.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_login_failed

from config.audit.recording import acting_as, record
from config.coordination import rate_limits

log = structlog.get_logger(__name__)
_REFUSALS_A_MINUTE = 1  # entries per account and address; for unchecked attempts per account


def watch_sign_ins() -> None:
    """Record all sign-ins with a password from now on."""
    user_logged_in.connect(_record_sign_in, dispatch_uid="audit:signed in")
    user_login_failed.connect(_record_refusal, dispatch_uid="audit:sign-in refused")


def _record_sign_in(user: Any, request: Any = None, **_: Any) -> None:
    with acting_as(user if user.is_staff else None):
        _record("signed in", user, _address(request))


def _record_refusal(
    credentials: dict[str, Any], request: Any = None, unchecked: bool = False, **_: Any
) -> None:
    """Record a wrong password, or one that was not checked because of the limit."""
    address = _address(request)
    users = get_user_model()
    account = users.objects.filter(**{users.USERNAME_FIELD: credentials.get("username")}).first()
    account_id = str(account.pk) if account else None
    log.warning("sign-in refused", address=address, account=account_id, unchecked=unchecked)
    key = f"refused:{'' if unchecked else address}:{account_id}"
    if account and not rate_limits.limiter.take(key, _REFUSALS_A_MINUTE):
        with acting_as(None):
            _record("sign-in refused", account, address)


def _record(action: str, account: Any, address: str) -> None:
    if account.is_staff:
        record(action, account, name=account.get_username(), after={"address": address})
    else:
        record(action, account, name=str(account.pk))


def _address(request: Any) -> str:
    return rate_limits.client_address(request.META) if request is not None else ""
