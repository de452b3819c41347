"""What a client gets when the database refuses a statement, or is away."""

from __future__ import annotations

from typing import Final

import structlog
from psycopg import DataError, OperationalError
from psycopg_pool import PoolTimeout, TooManyRequests

from config import database, errors

log = structlog.get_logger(__name__)

REFUSALS: Final = (OperationalError, DataError, PoolTimeout, TooManyRequests)


def refusal_of(error: Exception) -> errors.ParleyError:
    """What a client gets for one of the database's REFUSALS.

    If the database is away: come back in two seconds. Else a value of the request is none that a row or
    an index can hold, and would not be the next time either.
    """
    if isinstance(error, DataError) or not database.is_transient(error):
        log.exception("the database refused a value", exc_info=error)
        return errors.InvalidRequest(
            "The request holds a value that cannot be stored.", code="value_not_storable"
        )
    log.warning("the database is away")
    return errors.Unavailable(retry_after=2)
