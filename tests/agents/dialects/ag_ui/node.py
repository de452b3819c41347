"""The real AG-UI clients in a Node process of the test session (see clients.mjs)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.clients import environments
from tests.clients.process import Program

PROGRAM = Path(__file__).with_name("clients.mjs")
GENERATIONS = ("1.0.0", "0.0.59")


class Clients:
    """Answers to `ask` come from `clients.mjs`, one at a time."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made = 0

    def ask(self, op: str, **given: Any) -> Any:
        return self._program.ask({"op": op} | given)

    def new(self, generation: str, **given: Any) -> RealClient:
        made = self.made(generation, **given)
        self.ask(**made)
        return RealClient(self, made["agent"])

    def made(self, generation: str, **given: Any) -> dict[str, Any]:
        """What to ask for a new client, of a name of its own."""
        self._made += 1
        name = f"agent-{self._made}"
        url = {"url": "http://127.0.0.1:9/"}
        return {"op": "new", "agent": name, "generation": generation} | url | given

    def chains(self, chains: list[list[dict[str, Any]]], *, at_once: int = 1) -> list[list[Any]]:
        """The answers to lists of questions, so many lists at once; nothing that a client warns of."""
        told = self.ask("chains", chains=chains, atOnce=at_once)
        assert [said for said in told["warnings"] if "connection cut" not in said] == []
        answers: list[list[Any]] = told["answers"]
        return answers


class RealClient:
    """One `HttpAgent`, and what its app would see."""

    def __init__(self, clients: Clients, name: str) -> None:
        self._clients = clients
        self._name = name

    def run(self, **given: Any) -> dict[str, Any]:
        seen: dict[str, Any] = self._clients.ask("run", agent=self._name, **given)
        return seen


def start() -> Iterator[Clients]:
    """The clients for a session."""
    try:
        node, folder = environments.node("ag-ui")
    except environments.Unavailable as problem:
        environments.missing(str(problem))
    with environments.beside_packages(folder, PROGRAM) as place:
        program = Program([node, PROGRAM.name], place)
        yield Clients(program)
        program.close()
