"""An identity provider for tests of who is calling."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.support.fakes.issuer import EC, ISSUER, RSA, Issuer


@pytest.fixture
def issuer(settings: Settings) -> Iterator[Issuer]:
    """One whose tokens are accepted."""
    with Issuer(EC, RSA) as running:
        settings.JWT_JWKS_URL = running.url
        settings.JWT_ISSUERS = [ISSUER]
        yield running
