"""Which addresses are never asked, in whatever spelling, and that all others are."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from agents.models.plugins import websocket_address
from prompts.addresses import REFUSED, http_address, is_refused_host

NEVER = [
    "169.254.169.254",
    "169.254.169.254.",
    "169.254.0.1",
    "169.254.43518",
    "2852039166",
    "0xA9FEA9FE",
    "0251.0376.0251.0376",
    "0xa9.254.0251.254",
    "%31%36%39.254.169.254",
    "１６９.254.169.254",
    "169。254。169。254",
    "0.0.0.0",
    "0",
    "224.0.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "[::]",
    "[fe80::1]",
    "[fe80::1%eth0]",
    "[fe80::1%2510]",
    "[febf::1]",
    "[ff02::1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::169.254.169.254]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
]
ALWAYS = [
    "127.0.0.1",
    "localhost",
    "10.0.0.1",
    "192.168.169.254",
    "172.16.0.1",
    "100.64.0.1",
    "8.8.8.8",
    "169.253.255.255",
    "169.255.0.0",
    "ollama",
    "ollama.",
    "169.254.169.254.nip.io",
    "api.example.com",
    "bücher.example",
    "0x.example",
    "[::1]",
    "[fc00::1]",
    "[fd00:ec2::253]",
    "[2001:db8::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::8.8.8.8]",
]


@pytest.mark.parametrize("host", NEVER)
def test_what_is_never_asked_cannot_be_entered(host: str) -> None:
    assert is_refused_host(host.strip("[]"))
    for check, url in ((http_address, f"http://{host}/v1"), (websocket_address, f"ws://{host}:5400/x")):
        with pytest.raises(ValidationError) as refused:
            check(url)
        assert refused.value.messages == [REFUSED]


@pytest.mark.parametrize("host", ALWAYS)
def test_everything_else_can(host: str) -> None:
    assert not is_refused_host(host.strip("[]"))
    http_address(f"http://{host}:11434/v1")
    websocket_address(f"wss://{host}/control/ws")


@pytest.mark.parametrize("host", ["", ".", "..", "a..b", "x" * 100, "9" * 400, "%", "%zz", "1.2.3.4.5"])
def test_what_is_no_address_is_none_and_breaks_nothing(host: str) -> None:
    assert not is_refused_host(host)
