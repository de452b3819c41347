"""A client's program in a process of its own: a JSON object a line in, one a line out."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SHOWN = 3_000


class Program:
    """Answers to `ask` come one at a time, in order."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="client-")  # as long as the process
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=_own_environment(self._home.name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="utf-8",
        )

    def ask(self, question: Mapping[str, Any]) -> Any:
        """What the program answers; AssertionError with its last words if it has ended or is broken."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the program has ended: {self._last_words()}"
        answer = json.loads(line)
        broken = answer.get("broken") if isinstance(answer, dict) else None
        assert broken is None, f"{broken}\n{self._last_words()}"
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._process.stdout.close()
        self._complaints.close()
        self._home.cleanup()

    def _last_words(self) -> str:
        self._complaints.seek(0)
        return self._complaints.read().decode(errors="replace")[-SHOWN:]


def _own_environment(home: str) -> dict[str, str]:
    """Nothing of ours: no proxy, no key, no configuration of whoever runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": home, "PYTHONUTF8": "1", "NO_PROXY": "*"}
