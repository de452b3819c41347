"""Bearer authentication: from an Authorization header to a `Caller`, by one SQL statement.

Every API request and socket passes here, so there is no ORM, no thread switch and no cache: a revoked
token or a deactivated user is refused at once (only the keys of an identity provider are cached, see
`jwks_cache`). `authenticate` is for coroutines and `authenticate_sync` for DRF; both use the same
statements and rules.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from config import sql
from config.audit.recording import record
from config.auth import jwks_cache, jwt_checks
from config.auth.models import ApiToken, Scope, User, default_scopes
from config.errors import Forbidden, Unauthorized, Unavailable

API_TOKEN_PREFIX: Final = "parley_"
LONGEST_TOKEN: Final = 8 * 1024
_TOGETHER: Final = 64
_EPOCH: Final = 16  # characters of the digest of the salted password hash
_EVERY_SCOPE: Final = frozenset(Scope.values)


@dataclass(frozen=True, slots=True)
class Caller:
    """The account of a request, and the scopes of its token.

    `conversations.threads.names` derives the ids of threads from `namespace` and `named_by_id`.
    """

    user_id: UUID
    is_staff: bool
    is_guest: bool
    scopes: frozenset[str]
    namespace: UUID = field(repr=False)
    named_by_id: bool

    def require(self, scope: str) -> None:
        """Raise Forbidden (`scope_missing`) unless the token has this scope."""
        if scope not in self.scopes:
            raise Forbidden(
                f"This token lacks the scope {scope}: use one that has it.", code="scope_missing"
            )


def require_not_guest(caller: Caller) -> None:
    """Raise Forbidden (`ANONYMOUS_ACCESS_DENIED`) for anonymous visitors."""
    if caller.is_guest:
        raise Forbidden("Guests may not do that: sign in first.", code="ANONYMOUS_ACCESS_DENIED")


def require_staff(caller: Caller) -> None:
    """Raise Forbidden unless the caller is staff and the token has the admin scope."""
    require_not_guest(caller)
    if not caller.is_staff:
        raise Forbidden("Only staff may do that.")
    caller.require(Scope.ADMIN)


async def authenticate(header: str | None, *, begins: bool = False) -> Caller:
    """Return the caller of an Authorization header; raise Unauthorized.

    The lookup of a request that `begins` something new waits for the statements that are under way.
    API tokens of requests that arrive together are looked up by one statement, sent after they arrived.
    """
    token = _parse_bearer(header)
    if token.startswith(API_TOKEN_PREFIX):
        return _token_caller(await _token_accounts.call((_digest(token), begins)))
    if (keys := jwt_checks.pending_keys(token)) is not None:
        await jwks_cache.wait_for(keys)
    lookup = _make_lookup(token)
    for _ in range(lookup.tries):
        row = await sql.one(lookup.sql, lookup.parameters, begins=begins)
        if row is not None:
            break
    return lookup.judge(row and _Account(*row))


def authenticate_sync(header: str | None) -> Caller:
    """Do the same as `authenticate`, for synchronous code."""
    token = _parse_bearer(header)
    if not token.startswith(API_TOKEN_PREFIX) and (keys := jwt_checks.pending_keys(token)) is not None:
        jwks_cache.wait_for_sync(keys)
    lookup = _make_lookup(token)
    for _ in range(lookup.tries):
        rows = sql.fetch(lookup.sql, lookup.parameters)
        if rows:
            break
    return lookup.judge(_Account(*rows[0]) if rows else None)


def issue_token(
    user: User, *, scopes: Iterable[str] | None = None, lifetime_s: int | None = None
) -> tuple[str, int]:
    """Return a JWT for this user and its lifetime; deactivation or a new password ends it early."""
    epoch = hashlib.sha256(user.password.encode()).hexdigest()[:_EPOCH]
    return jwt_checks.issue(str(user.pk), epoch=epoch, scopes=scopes, lifetime_s=lifetime_s)


def create_api_token(
    user: User, name: str, *, scopes: Iterable[str] | None = None, expires_at: datetime | None = None
) -> tuple[ApiToken, str]:
    """Create a long-lived token; return it and its text, which is not stored."""
    text = API_TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        digest=_digest(text),
        prefix=text[: len(API_TOKEN_PREFIX) + 5],
        scopes=default_scopes() if scopes is None else list(scopes),
        expires_at=expires_at,
    )
    return token, text


def revoke(token: ApiToken) -> None:
    """Refuse this token from the next request on; a repetition keeps the first time."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        record("revoked", token)
    token.refresh_from_db(fields=["revoked_at"])


class _Account(NamedTuple):
    """The row of every lookup."""

    user_id: UUID
    is_active: bool
    is_staff: bool
    is_guest: bool
    namespace: UUID
    named_by_id: bool
    scopes: list[str] | None = None
    is_revoked: bool = False
    is_expired: bool = False
    digest: str = ""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A statement, and the function that derives the caller from its row."""

    sql: str
    parameters: dict[str, Any]
    judge: Callable[[_Account | None], Caller]
    tries: int = 1


# A token without an epoch was not made by `issue_token`, but by a program that has JWT_SECRET.
_LOCAL_USER: Final = """
SELECT id, is_active, is_staff, is_guest, namespace, named_by_id, NULL, coalesce(
    left(encode(sha256(convert_to(password, 'UTF8')), 'hex'), %(length)s) <> %(epoch)s::text, false)
FROM accounts_user WHERE id = %(id)s
"""

# last_used_at must not cause waiting: a row that another request is updating is skipped.
_API_TOKENS: Final = """
WITH stamped AS (
    UPDATE accounts_apitoken SET last_used_at = now()
    WHERE id IN (
        SELECT id FROM accounts_apitoken
        WHERE digest = ANY(%(digests)b::text[]) AND revoked_at IS NULL
            AND (expires_at IS NULL OR expires_at > now())
            AND (last_used_at IS NULL OR last_used_at <= now() - interval '1 minute')
        FOR NO KEY UPDATE SKIP LOCKED
    )
)
SELECT account.id, account.is_active, account.is_staff, account.is_guest, account.namespace,
    account.named_by_id, token.scopes, token.revoked_at IS NOT NULL,
    coalesce(token.expires_at <= now(), false), token.digest
FROM accounts_apitoken token JOIN accounts_user account ON account.id = token.user_id
WHERE token.digest = ANY(%(digests)b::text[])
"""

# The first request of an identity stores it, and a guest who has signed up is no longer a guest.
# Of two concurrent first requests one inserts; the other waits, gets no row and finds it on a retry.
_IDENTITY: Final = """
WITH known AS (
    SELECT id, is_active, is_staff, is_guest, namespace, named_by_id FROM accounts_user
    WHERE issuer = %(issuer)s AND subject = %(subject)s
), signed_up AS (
    UPDATE accounts_user SET is_guest = false
    WHERE id = (SELECT id FROM known WHERE is_guest AND NOT %(is_guest)s)
), made AS (
    INSERT INTO accounts_user (id, username, password, issuer, subject, is_guest, is_active, is_staff,
        is_superuser, first_name, last_name, email, date_joined)
    SELECT gen_random_uuid(), %(username)s, '!' || gen_random_uuid(), %(issuer)s, %(subject)s,
        %(is_guest)s, true, false, false, '', '', '', now()
    WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT DO NOTHING
    RETURNING id, is_active, is_staff, is_guest, namespace, named_by_id
)
SELECT id, is_active, is_staff, %(is_guest)s, namespace, named_by_id FROM known
UNION ALL SELECT id, is_active, is_staff, is_guest, namespace, named_by_id FROM made
"""


async def _find_token_accounts(wanted: list[tuple[str, bool]]) -> list[_Account | None]:
    """Return the accounts of the digests of tokens; each comes with whether its request begins."""
    begins = all(one for _, one in wanted)
    digests = list({digest for digest, _ in wanted})
    rows = await sql.every(_API_TOKENS, {"digests": digests}, begins=begins)
    found = {account.digest: account for account in itertools.starmap(_Account, rows)}
    return [found.get(digest) for digest, _ in wanted]


_token_accounts: Final = sql.Grouped(_find_token_accounts, most=_TOGETHER)


def _make_lookup(token: str) -> _Lookup:
    if token.startswith(API_TOKEN_PREFIX):
        return _Lookup(_API_TOKENS, {"digests": [_digest(token)]}, _token_caller)
    found = jwt_checks.verify(token)
    if found.issuer == settings.JWT_LOCAL_ISSUER:
        judge = functools.partial(_local_caller, scopes=found.scopes)
        local = {"id": _parse_local_id(found.subject), "epoch": found.epoch, "length": _EPOCH}
        return _Lookup(_LOCAL_USER, local, judge)
    _refuse_guest(found.is_guest)
    parameters = {
        "issuer": found.issuer,
        "subject": found.subject,
        "username": _username(found.issuer, found.subject),
        "is_guest": found.is_guest,
    }
    return _Lookup(_IDENTITY, parameters, _identity_caller, tries=2)


def _parse_bearer(header: str | None) -> str:
    match (header or "").split():
        case []:
            raise Unauthorized(code="token_missing")
        case [scheme] if scheme.lower() == "bearer":
            raise Unauthorized(code="token_missing")
        case [scheme, token] if scheme.lower() == "bearer":
            if len(token) > LONGEST_TOKEN or not token.isascii():
                raise Unauthorized("The token is too long or not plain ASCII.", code="invalid_token")
            return token
    raise Unauthorized("Send exactly Authorization: Bearer <token>.", code="invalid_token_header")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _parse_local_id(subject: str) -> UUID:
    try:
        return UUID(subject)
    except ValueError:
        raise Unauthorized("The token names no user of this server.", code="invalid_token") from None


def _username(issuer: str, subject: str) -> str:
    """Return a user name that is as unique as the identity."""
    return "user-" + hashlib.sha256(f"{issuer}\0{subject}".encode()).hexdigest()[:32]


def _token_caller(account: _Account | None) -> Caller:
    if account is None:
        raise Unauthorized("There is no such API token: ask staff for a new one.", code="invalid_token")
    if account.is_revoked:
        raise Unauthorized("The API token was revoked: ask staff for a new one.", code="invalid_token")
    if account.is_expired:
        raise Unauthorized("The API token has expired: ask staff for a new one.", code="token_expired")
    return _make_caller(account, frozenset(account.scopes or ()))


def _local_caller(account: _Account | None, scopes: frozenset[str] | None) -> Caller:
    if account is None:
        raise Unauthorized("The token's user is gone: sign in again.", code="invalid_token")
    if account.is_revoked:
        raise Unauthorized("The password was changed: sign in again.", code="invalid_token")
    return _make_caller(account, _EVERY_SCOPE if scopes is None else _EVERY_SCOPE & scopes)


def _identity_caller(account: _Account | None) -> Caller:
    if account is None:  # deleted between the tries, or a local user has taken the username
        raise Unavailable("The account could not be created: try again.", retry_after=1)
    return _make_caller(account, _EVERY_SCOPE)


def _make_caller(account: _Account, scopes: frozenset[str]) -> Caller:
    if not account.is_active:
        raise Unauthorized("This account is switched off: ask staff.", code="unauthorized")
    _refuse_guest(account.is_guest)
    return Caller(
        account.user_id,
        account.is_staff,
        account.is_guest,
        scopes,
        namespace=account.namespace,
        named_by_id=account.named_by_id,
    )


def _refuse_guest(is_guest: bool) -> None:
    if is_guest and not settings.GUESTS_ALLOWED:
        raise Forbidden("Guests are not let in here: sign in.", code="ANONYMOUS_ACCESS_DENIED")
