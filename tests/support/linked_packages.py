"""Environments whose packages are those of the tests, linked: nothing is fetched again."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path


def link_pinned(pins: Path, folder: Path) -> None:
    """Link the packages that a list pins, without their programs, into another site-packages.

    Raise AssertionError if another version is installed here.
    """
    for name, _, version in (pin.partition("==") for pin in pins.read_text().split()):
        installed = distribution(name)
        assert installed.version == version, name
        for file in installed.files or ():
            link = folder / file
            if ".." in file.parts or file.suffix == ".pyc" or link.is_symlink():  # two lists may pin it
                continue
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.locate())
