"""The dimensions of metrics: what a query filters runs by, and groups them by.

A cell of the rollups has one value of each, so a new dimension needs a column in their tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Group = Literal["model", "prompt_version", "dialect", "runner"]


@dataclass(frozen=True)
class Dimension:
    """A dimension: its name in queries, its column in rollups, and the conditions of a filter by it.

    `grain` is the letter of the rollups in which all other dimensions are added up; `blank` is the SQL
    of the column where this one is.
    """

    name: Group
    column: str
    grain: str
    condition: str
    run_condition: str
    blank: str = "''"


def _dimension_of_text(name: Group) -> Dimension:
    return Dimension(name, name, name[0], f"{name} = %({name})s", f"run.{name} = %({name})s")


DIMENSIONS: Final = (
    _dimension_of_text("model"),
    Dimension(
        "prompt_version",
        "prompt_versions",
        "p",
        "prompt_versions @> ARRAY[%(prompt_version)s::int]",
        "run.prompt_versions @> "
        "jsonb_build_array(jsonb_build_object('version_id', %(prompt_version)s::int))",
        blank="'{}'::int[]",
    ),
    _dimension_of_text("dialect"),
    _dimension_of_text("runner"),
)
GROUPS: Final = tuple(dimension.name for dimension in DIMENSIONS)
CELL: Final = tuple(dimension.column for dimension in DIMENSIONS)
