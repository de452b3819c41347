"""Where this Parley is installed: a checkout of its repository, or an environment of pip or pipx."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import platformdirs
from django.core.exceptions import ImproperlyConfigured

from config import env

_ROOT: Final = Path(__file__).resolve().parents[2]
_IS_CHECKOUT: Final = (_ROOT / "manage.py").is_file()
UP: Final = "make up" if _IS_CHECKOUT else "parley up"
MANAGE: Final = "manage.py" if _IS_CHECKOUT else "parley manage"


def var_folder() -> Path:
    """Return VAR_DIR: by default `var` in a checkout, else the user's folder for data of programs."""
    default = _ROOT / "var" if _IS_CHECKOUT else platformdirs.user_data_path("parley")
    return Path(env.text("VAR_DIR", str(default))).resolve()


def require_extra(extra: str, module: str, *, setting: str) -> None:
    """Raise ImproperlyConfigured if the setting needs an extra whose module is not installed."""
    if not env.is_installed(module):
        raise ImproperlyConfigured(
            f"{setting} needs the extra `{extra}`, which is not installed. "
            f"Run {install_command(extra)}, or leave {setting.partition('=')[0]} unset."
        )


def install_command(extra: str) -> str:
    """Return the command that adds an optional part: `analytics`, `daphne`, `otel`, `s3` or `sentry`."""
    if _IS_CHECKOUT:
        return f".venv/bin/pip install -r requirements/{extra}.txt"
    return f"pip install 'parley[{extra}]'"
