"""A network of hosts on one machine: namespaces with an address each, joined by a bridge.

It is laid inside namespaces of one's own (`ALONE`): the machine's network is never touched, none of its
addresses can be reached, and everything ends with the first process in there.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Final

ALONE: Final = (
    "unshare",
    *("--net", "--mount", "--uts"),
    *("--pid", "--fork", "--mount-proc", "--kill-child"),
)
HERE: Final = "10.83.0.1"
"""The address of the services and of the clients."""
_NAMED: Final = "/run/netns"
_TRY: Final = "ip link add bridge type bridge && ip netns add one && ip netns delete one"


def missing() -> str:
    """Return why no network can be laid here, or nothing."""
    try:
        done = subprocess.run(
            (
                *ALONE,
                "sh",
                "-c",
                "ip link add bridge type bridge && ip netns add one && ip netns delete one",
            ),
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        return f"there is no {error.filename} here (apt-get install util-linux iproute2)"
    return f"no network namespaces here: {done.stderr.strip()}" if done.returncode else ""


@dataclass(frozen=True)
class Host:
    """One host of the network; its processes are those that are started by `command`."""

    number: int

    @property
    def name(self) -> str:
        return f"host-{self.number}"

    @property
    def address(self) -> str:
        return f"10.83.0.{10 + self.number}"

    def command(self, *words: str) -> tuple[str, ...]:
        """Return the command that runs another one on this host, as the same process."""
        named = 'hostname "$0" && exec "$@"'
        return "ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", named, self.name, *words

    def cut(self) -> None:
        """From now on nothing that it sends or is sent arrives, and nobody is told."""
        _ip("link", "set", f"to-{self.name}", "down")

    def join(self) -> None:
        """Undo `cut`."""
        _ip("link", "set", f"to-{self.name}", "up")


def lay(count: int) -> list[Host]:
    """Lay a network of so many hosts, all of them reachable from here."""
    subprocess.run(("mkdir", "-p", _NAMED), check=True)
    subprocess.run(("mount", "-t", "tmpfs", "tmpfs", _NAMED), check=True)
    _ip("link", "set", "lo", "up")
    _ip("link", "add", "bridge", "type", "bridge")
    _ip("address", "add", f"{HERE}/24", "dev", "bridge")
    _ip("link", "set", "bridge", "up")
    hosts = [Host(number) for number in range(1, count + 1)]
    for host in hosts:
        _ip("netns", "add", host.name)
        _ip("link", "add", f"to-{host.name}", "type", "veth", "peer", "name", "eth0", "netns", host.name)
        _ip("link", "set", f"to-{host.name}", "master", "bridge", "up")
        _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
        _ip("-n", host.name, "link", "set", "eth0", "up")
        _ip("-n", host.name, "link", "set", "lo", "up")
    return hosts


def _ip(*words: str) -> None:
    subprocess.run(("ip", *words), check=True)
