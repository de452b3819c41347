"""The ids of threads that clients name: of an account with a namespace they need no look-up."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4, uuid5

from config.auth.bearer import Caller
from conversations.threads import names


def caller_with(namespace: UUID) -> Caller:
    return Caller(uuid4(), False, False, frozenset(), namespace=namespace, named_by_id=False)


def test_a_name_means_one_thread_an_account_and_asks_no_database() -> None:
    caller, other = caller_with(uuid4()), caller_with(uuid4())
    session = asyncio.run(names.thread_of_session("main", caller=caller))
    assert session == uuid5(caller.namespace, "session:main")
    assert asyncio.run(names.thread_of("main", caller=caller)) == session
    assert asyncio.run(names.thread_of_run("r1", caller=caller)) == uuid5(caller.namespace, "r1")
    assert asyncio.run(names.thread_of_session("main", caller=other)) != session
    given = uuid4()
    for written in (str(given), given.hex):
        assert asyncio.run(names.thread_of(written, caller=caller)) == given


def test_a_caller_is_written_without_its_namespace() -> None:
    caller = caller_with(uuid4())
    assert str(caller.namespace) not in repr(caller)
