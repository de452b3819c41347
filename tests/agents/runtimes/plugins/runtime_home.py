"""The real plugin runtime of langbot-plugin, in a folder of its own with the test plugins installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.ports import free_port
from tests.support.fakes.mcp_host import wait_until

SOURCE = Path(__file__).with_name("probe_plugin.py")
ALL = {
    "models": ["invoke", "stream", "rerank"],
    "tools": ["detail", "call"],
    "knowledge_bases": ["list", "retrieve"],
    "history": ["page", "search"],
    "events": ["get", "page"],
    "storage": ["plugin", "workspace"],
}


def install(home: Path, name: str, permissions: dict[str, Any], **config: Any) -> None:
    """Put the probe into the runtime's folder as the plugin `parley/NAME` with the runner `default`."""
    folder = home / "data" / "plugins" / f"parley__{name}"
    runners = folder / "components" / "runner"
    runners.mkdir(parents=True)
    shutil.copy(SOURCE, folder / "main.py")
    shutil.copy(SOURCE, runners / "default.py")
    (folder / "assets").mkdir()
    (folder / "assets" / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    label = {"en_US": name.title(), "zh_Hans": "探针"}
    plugin = {
        "apiVersion": "v1",
        "kind": "Plugin",
        "metadata": {
            "author": "parley",
            "name": name,
            "version": "0.1.0",
            "description": label,
            "label": label,
            "repository": "",
            "icon": "assets/icon.svg",
        },
        "spec": {"config": [], "components": {"Runner": {"fromDirs": [{"path": "components/runner/"}]}}},
        "execution": {"python": {"path": "main.py", "attr": "ProbePlugin"}},
    }
    (folder / "manifest.yaml").write_text(yaml.safe_dump(plugin))
    spec = {
        "usages": ["agent"],
        "capabilities": {"streaming": True, "tool_calling": True, "knowledge_retrieval": True},
        "permissions": permissions,
        "config": config.get("config", []),
    }
    runner = {
        "apiVersion": "langbot/v1",
        "kind": "Runner",
        "metadata": {"name": "default", "label": label, "description": label},
        "spec": spec,
        "execution": {"python": {"path": "./default.py", "attr": "Probe"}},
    }
    (runners / "default.yaml").write_text(yaml.safe_dump(runner))


@dataclass
class RuntimeHome:
    """One runtime: where it lives, and its process while it runs."""

    home: Path
    token: str = ""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/control/ws"

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "langbot_plugin.cli.__init__", "rt", "--skip-deps-check"]

    def start(self) -> None:
        ports = ["--ws-control-port", str(self.port), "--ws-debug-port", str(free_port())]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        if self.token:
            environment["LANGBOT_PLUGIN_RUNTIME_CONTROL_TOKEN"] = self.token
        with (self.home / "runtime.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, *ports], cwd=self.home, env=environment, stdout=log, stderr=log
            )
        wait_until(self._answers, 30)

    def _answers(self) -> bool:
        import httpx

        assert self.process is not None
        assert self.process.poll() is None, (self.home / "runtime.log").read_text()[-3000:]
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/healthz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def plugin_pid(self, name: str) -> int | None:
        """The process of one of its plugins."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if child.cwd().endswith(f"parley__{name}"):
                    return child.pid
            except psutil.Error:
                continue
        return None

    def stop(self) -> None:
        if self.process is None:
            return
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        self.process = None
        gone_by = time.monotonic() + 5
        for child in children:
            while child.is_running() and time.monotonic() < gone_by:
                time.sleep(0.02)
            if child.is_running():
                child.kill()
