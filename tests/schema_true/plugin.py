"""The hook: a test that got an answer which does not fit fails, with the route and the place.

An answer that ends after its test is told with the next one, by the name of the test that asked.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from tests.schema_true import protocols
from tests.schema_true.document import published
from tests.schema_true.recording import Exchange, record_django, record_httpx, records

MOST_TOLD = 10


def pytest_configure() -> None:
    record_django()
    record_httpx()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    records.test = item.nodeid
    try:
        yield
    except BaseException:
        list(records.taken())  # the test has failed for reasons of its own
        raise
    check(item)


def check(item: pytest.Item) -> None:
    """Fail if something that was answered does not fit."""
    found = list(dict.fromkeys(told()))
    if found:
        pytest.fail("not as published:\n" + "\n".join(found[:MOST_TOLD]), pytrace=False)


def told() -> Iterator[str]:
    """What is wrong with the answers since the last call."""
    for exchange in records.taken():
        for fault in () if exchange.test in records.excused else faults(exchange):
            yield f"{fault} (asked by {exchange.test})"


def faults(exchange: Exchange) -> Iterator[str]:
    """What is wrong with an answer."""
    try:
        yield from published().faults(exchange)
        yield from protocols.faults(exchange)
    except ValueError as error:
        yield f"{exchange.method} {exchange.path} {exchange.status}: the body is no JSON: {error}"
