"""What the framework's views raise gets the one shape, also what the database refuses."""

from __future__ import annotations

import django.db
import psycopg
import pytest

from config.http.drf_plugins import render_error


def wrapped(error: psycopg.Error, by: type[django.db.Error]) -> django.db.Error:
    """An error as Django raises it: its own class, with the driver's as the cause."""
    try:
        raise by("not for clients") from error
    except django.db.Error as made:
        return made


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (
            wrapped(psycopg.errors.NumericValueOutOfRange(), django.db.DataError),
            422,
            "value_not_storable",
        ),
        (wrapped(psycopg.OperationalError(), django.db.OperationalError), 503, "unavailable"),
        (
            wrapped(psycopg.errors.ProgramLimitExceeded(), django.db.OperationalError),
            422,
            "value_not_storable",
        ),
        (ZeroDivisionError("not for clients"), 500, "internal_error"),
    ],
)
def test_an_error_of_the_database_is_a_refusal_and_no_500(
    error: Exception, status: int, code: str
) -> None:
    response = render_error(error, {})
    assert response is not None
    assert (response.status_code, response.data["code"]) == (status, code)
    assert "not for clients" not in str(response.data)
    assert response.headers["Cache-Control"] == "no-store"
    assert ("Retry-After" in response.headers) == (status == 503)
