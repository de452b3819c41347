"""Keys in a binding's config: sealed at rest, opened only for the run's own context (promise P12).

In place of a key the config has `{"$secret": NAME}`, the name of a `prompts.Secret`, so that
`manage.py rotate_keys` seals it anew with all others. A key is opened only for the binding and the item
that it was entered for, and only if the manifest declares that item a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import structlog

from agents.host.grants import Binding
from agents.host_protocol.manifest import RunnerManifest
from prompts.endpoints.secrets import Owner, Purpose, open_secret, read_sealed

log = structlog.get_logger(__name__)

REFERENCE: Final = "$secret"


async def open_config(binding: Binding, manifest: RunnerManifest) -> dict[str, Any]:
    """Return the binding's config with its keys; missing keys and those of other items are left out.

    A statement is needed only for a config with keys. Raise `SecretUnreadable` for a key that no sealing
    key opens.
    """
    plain = {item: value for item, value in binding.config.items() if not _is_reference(value)}
    if len(plain) == len(binding.config):
        return binding.config
    owners = dict(_owners(binding, manifest))
    if foreign := binding.config.keys() - plain.keys() - owners.keys():
        log.warning("foreign keys left out", binding=binding.name, items=sorted(foreign))
    sealed = await read_sealed([owner.secret_name for owner in owners.values()])
    keys = {
        item: open_secret(sealed[owner.secret_name], owner)
        for item, owner in owners.items()
        if owner.secret_name in sealed
    }
    return plain | keys


def owner_of(binding_id: int, item: str) -> Owner:
    """Return the owner of the key that was entered for this item."""
    return Purpose.RUNNER_BINDING.of(binding_id, item)


def reference_to(owner: Owner) -> dict[str, str]:
    """Return the reference that stands for the owner's key in the config."""
    return {REFERENCE: owner.secret_name}


def has_reference(value: Any) -> bool:
    """Return whether a value is or contains a reference to a key, at any depth."""
    waiting = [value]
    while waiting:  # no recursion: the entered value may be nested as deeply as JSON allows
        match waiting.pop():
            case dict() as value_inside:
                if REFERENCE in value_inside:
                    return True
                waiting += value_inside.values()
            case list() as value_inside:
                waiting += value_inside
    return False


def _owners(binding: Binding, manifest: RunnerManifest) -> Iterator[tuple[str, Owner]]:
    """Yield the items that the manifest declares secret and whose value refers to their own key."""
    for item in manifest.config_schema:
        owner = owner_of(binding.id, item.name)
        if item.is_secret and binding.config.get(item.name) == reference_to(owner):
            yield item.name, owner


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and REFERENCE in value
