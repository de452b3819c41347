"""A burst of connections does not wait in the kernel for as many turns of the loop as it has."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import uvloop

from config.process import server
from config.process.bootstrap import bind

BURST = 64
REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n"


def test_a_turn_of_a_busy_loop_accepts_several_connections() -> None:
    turns, arrived_in = 0, list[int]()
    everybody_is_here, stop = threading.Event(), asyncio.Event()
    listener, loop = bind("127.0.0.1", 0), uvloop.new_event_loop()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        arrived_in.append(turns)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def turn() -> None:
        nonlocal turns
        turns += 1
        everybody_is_here.wait(10)
        loop.call_soon(turn)

    async def serve() -> None:
        asyncio.get_running_loop().call_later(0.2, turn)
        await server.serve(application, listener=listener, server="uvicorn", stop=stop)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    while not turns:  # from then on the loop waits for everybody
        everybody_is_here.wait(0.01)
    callers = [socket.create_connection(listener.getsockname()) for _ in range(BURST)]
    for caller in callers:
        caller.sendall(REQUEST)
    everybody_is_here.set()
    for caller in callers:
        assert caller.recv(1024).startswith(b"HTTP/1.1 204")
        caller.close()
    loop.call_soon_threadsafe(stop.set)
    thread.join(20)
    assert len(arrived_in) == BURST
    assert arrived_in[-1] - arrived_in[0] < 8
