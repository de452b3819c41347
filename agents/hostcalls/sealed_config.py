"""Keys in a binding's config: sealed at rest, opened only for the run's own context (promise P12).

Where a key belongs the config holds `{"$secret": NAME}`, the name of a `prompts.Secret`, so that
`manage.py rotate_keys` seals it anew with all the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agents import rows
from prompts import secrets

REFERENCE: Final = "$secret"
_SEALED: Final = "SELECT name, sealed FROM prompts_secret WHERE name = ANY(%s)"


async def opened(config: dict[str, Any]) -> dict[str, Any]:
    """The config with its keys; one that is gone is left out.

    A statement only for a config that holds keys. `SecretUnreadable` for one that no sealing key opens.
    """
    names = dict(_references(config))
    if not names:
        return config
    sealed = dict(await rows.every(_SEALED, (list(names.values()),)))
    found = {item: secrets.open_sealed(sealed[name]) for item, name in names.items() if name in sealed}
    plain = {item: value for item, value in config.items() if item not in names}
    return plain | found


def secret_names(config: Any) -> list[str]:
    """The names of the secrets that a config refers to."""
    return [name for _, name in _references(config)] if isinstance(config, dict) else []


def _references(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for item, value in config.items():
        if isinstance(value, dict) and isinstance(name := value.get(REFERENCE), str):
            yield item, name
