"""Find runs by the `metadata` that their clients sent for reconciliation (seed 002).

The index `run_by_metadata` holds every key and value at any depth, of the runs that have any.
"""

from __future__ import annotations

import json
import re
from typing import Final
from uuid import UUID

from config import sql

METADATA_MOST: Final = 200
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?")
# Find first, then sort: with an order, the planner may walk all runs by their time.
_WITH: Final = f"""
WITH found AS MATERIALIZED (
    SELECT id, created_at FROM conversations_run
    WHERE request ? 'metadata' AND request -> 'metadata' @? %s::jsonpath LIMIT 10000)
SELECT id FROM found ORDER BY created_at DESC LIMIT {METADATA_MOST}
"""


def find_runs_with_metadata(value: str) -> list[UUID]:
    """Return the newest runs whose metadata has this text, or its number, as a value."""
    return [run_id for (run_id,) in sql.fetch(_WITH, (_path(value),))]


def _path(value: str) -> str:
    equal = f"@ == {json.dumps(value)}"
    if _NUMBER.fullmatch(value):
        equal += f" || @ == {value}"
    return f"$.** ? ({equal})"
