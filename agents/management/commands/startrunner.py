"""`manage.py startrunner NAME`: create a working runner package with a test."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TEMPLATES: Final = Path(__file__).resolve().parent.parent / "runner_template"


class Command(BaseCommand):
    """A command that writes one folder and changes nothing else."""

    help = (
        "Make an in-process runner: a Python package with an entry point in the group parley.runners, "
        "and a test. Install it where Parley runs (pip install ./NAME), restart, and bind it in admin."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="small letters, digits and _, for example my_agent")
        parser.add_argument(
            "directory", nargs="?", type=Path, default=Path(), help="where to make it; by default here"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name: str = options["name"]
        if not _NAME.fullmatch(name):
            raise CommandError(
                "A runner's name has small letters, digits and _, and begins with a letter."
            )
        target = options["directory"] / name
        if target.exists():
            raise CommandError(f"{target} is there already: choose another name or directory.")
        for template in sorted(_TEMPLATES.rglob("*.tmpl")):
            relative = str(template.relative_to(_TEMPLATES)).replace("NAME", name)
            path = target / relative.removesuffix(".tmpl")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                text = Template(template.read_text(encoding="utf-8"))
                label = name.replace("_", " ").capitalize()
                path.write_text(text.substitute(name=name, label=label), encoding="utf-8")
            except OSError as problem:
                raise CommandError(f"{path} cannot be written: {problem.strerror}.") from None
        self.stdout.write(
            f"Made {target}. Its test: cd {target} && python -m pytest. Its id once installed "
            f"(pip install {target}): python:{name}."
        )
