"""Statements that every run executes stay short enough for psycopg to remember what it made of them.

A longer one has its placeholders looked for anew in every run, by a regular expression on the loop.
"""

from __future__ import annotations

from types import ModuleType

import psycopg._queries as queries
import pytest

from agents.worker.loop import HOLDER
from conversations.log import event_log
from conversations.runs import acceptance, end_sql, leases
from conversations.runs import client_queries as reads

PATHS = [acceptance, leases, end_sql, event_log, reads]


def statements(module: ModuleType) -> dict[str, str]:
    """The module's texts that hold placeholders, but no template that is still to be filled."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, str)
        and "%" in value
        and "SELECT" in value.upper()
        and not name.endswith("STATEMENT")
    }


@pytest.mark.parametrize("module", PATHS, ids=lambda module: module.__name__)
def test_a_statement_of_every_run_is_remembered(module: ModuleType) -> None:
    rare = {"_END_ASKING", "_END_TOGETHER_ASKING"}  # runs that wait for an approval
    long = {
        name: len(text)
        for name, text in statements(module).items()
        if len(text) > queries.MAX_CACHED_STATEMENT_LENGTH and name not in rare
    }
    assert statements(module)
    assert not long


@pytest.mark.parametrize("split", [False, True])
def test_a_claim_is_remembered(split: bool) -> None:
    statement = leases.claim_statement(HOLDER, split=split)
    assert f"NOT EXISTS ({HOLDER})" in statement
    assert len(statement) <= queries.MAX_CACHED_STATEMENT_LENGTH
