"""Sign-ins, good and refused: an entry in the audit log each, and a line for each refusal.

Of people who are not staff an entry holds the id alone: an account can be erased, and the log cannot. A
name that is nobody's is in neither, as it may be a password in the wrong field.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_login_failed

from config import limits
from config.audit.recording import acting_as, record

log = structlog.get_logger(__name__)
_REFUSALS_A_MINUTE = 1  # entries about one account from one address; unchecked ones from all of them


def watch_sign_ins() -> None:
    """Record them from now on, wherever somebody signs in with a password."""
    user_logged_in.connect(_signed_in, dispatch_uid="audit:signed in")
    user_login_failed.connect(_refused, dispatch_uid="audit:sign-in refused")


def _signed_in(user: Any, request: Any = None, **_: Any) -> None:
    with acting_as(user if user.is_staff else None):
        _record("signed in", user, _address(request))


def _refused(
    credentials: dict[str, Any], request: Any = None, unchecked: bool = False, **_: Any
) -> None:
    """A wrong password, or one that was not looked at because too many were wrong."""
    address = _address(request)
    users = get_user_model()
    account = users.objects.filter(**{users.USERNAME_FIELD: credentials.get("username")}).first()
    whose = str(account.pk) if account else None
    log.warning("sign-in refused", address=address, account=whose, unchecked=unchecked)
    place = f"refused:{'' if unchecked else address}:{whose}"
    if account and not limits.limiter.take(place, _REFUSALS_A_MINUTE):
        with acting_as(None):
            _record("sign-in refused", account, address)


def _record(action: str, account: Any, address: str) -> None:
    if account.is_staff:
        record(action, account, name=account.get_username(), after={"address": address})
    else:
        record(action, account, name=str(account.pk))


def _address(request: Any) -> str:
    return limits.client_address(request.META) if request is not None else ""
