"""What the embedded PostgreSQL does to the folders that it lies in."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from config.process.embedded_postgres import allow_traversal


def modes(*folders: Path) -> list[int]:
    return [folder.stat().st_mode & 0o777 for folder in folders]


def nest(place: Path) -> list[Path]:
    """Three folders, one in the other, of which only the middle one stops others."""
    folders = [place / "a", place / "a" / "b", place / "a" / "b" / "c"]
    for folder, mode in zip(folders, (0o711, 0o700, 0o755), strict=True):
        folder.mkdir()
        folder.chmod(mode)
    return folders


def test_only_a_folder_that_stops_the_database_is_opened_and_it_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o711)
    folders = nest(tmp_path)
    other = next(one for one in pwd.getpwall() if one.pw_uid != folders[0].stat().st_uid)
    allow_traversal(folders[-1], other)
    assert modes(*folders) == [0o711, 0o701, 0o755]
    named = [line.split(" may now")[0] for line in capsys.readouterr().err.splitlines()]
    assert [name for name in named if name.startswith(str(tmp_path))] == [str(folders[1])]
    allow_traversal(folders[-1], other)
    assert capsys.readouterr().err == ""


def test_a_folder_of_the_user_itself_is_left_as_it_is(tmp_path: Path) -> None:
    folders = nest(tmp_path)
    allow_traversal(folders[-1], pwd.getpwuid(folders[1].stat().st_uid))
    assert modes(*folders) == [0o711, 0o700, 0o755]
