"""The options of a `rediss://` address reach the TLS context, or are refused by name."""

from __future__ import annotations

import ssl

import pytest
from redis.asyncio import ConnectionPool

from config.coordination.redis_pubsub import _tls


def _context(query: str) -> ssl.SSLContext:
    return _tls(ConnectionPool.from_url(f"rediss://redis.example/0?{query}").connection_kwargs)


def test_without_options_certificate_and_name_are_checked() -> None:
    context = _context("")
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_options_are_obeyed() -> None:
    assert _context("ssl_check_hostname=false").check_hostname is False
    unchecked = _context("ssl_cert_reqs=none")
    assert (unchecked.verify_mode, unchecked.check_hostname) == (ssl.CERT_NONE, False)
    assert _context("ssl_min_version=772").minimum_version is ssl.TLSVersion.TLSv1_3
    with pytest.raises(FileNotFoundError):
        _context("ssl_ca_certs=/nowhere.pem")


def test_another_option_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="ssl_validate_ocsp is not supported"):
        _context("ssl_validate_ocsp=true")
