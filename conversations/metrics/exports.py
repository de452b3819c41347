"""Rows as CSV, JSON lines or Parquet, written a list at a time: memory holds one list of any export.

The bytes are made on an operating-system thread, so that no stream waits for an export. Parquet needs
pyarrow, of the extra `analytics`.
"""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import io
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, Protocol

import msgspec

from config.errors import ParleyError
from conversations.metrics.query import Format
from conversations.metrics.rollup_reads import Row
from conversations.metrics.sheets import kind_of

CONTENT_TYPES: Final[dict[Format, str]] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class ParquetMissing(ParleyError):
    """This server cannot write Parquet: its operator installs the extra `analytics`, or ask for csv."""

    code = "parquet_not_installed"
    status = 501


class _Writer(Protocol):
    """Turns rows into bytes; `end` returns the last ones."""

    def write(self, rows: Sequence[Row]) -> bytes: ...

    def end(self) -> bytes: ...


def make_writer(kind: Format, columns: tuple[str, ...]) -> _Writer:
    """Return a writer of one file. Raise ParquetMissing where there is none."""
    match kind:
        case "csv":
            return _Csv(columns)
        case "parquet":
            if importlib.util.find_spec("pyarrow") is None:
                raise ParquetMissing
            return _Parquet(columns)
    return _JsonLines()


async def export_rows(lists: AsyncGenerator[list[Row]], writer: _Writer) -> AsyncGenerator[bytes]:
    """Yield the file in pieces."""
    async with aclosing(lists):
        async for rows in lists:
            if piece := await asyncio.to_thread(writer.write, rows):
                yield piece
    if piece := await asyncio.to_thread(writer.end):
        yield piece


class _JsonLines:
    def write(self, rows: Sequence[Row]) -> bytes:
        return msgspec.json.Encoder().encode_lines(rows)

    def end(self) -> bytes:
        return b""


class _Csv:
    """CSV (RFC 4180) with a header. A text that spreadsheets take for a formula gets an apostrophe."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = columns
        self._mended = [
            (place, _MENDED[kind])
            for place, kind in enumerate(map(kind_of, columns))
            if kind in _MENDED and not columns[place].endswith("_id")
        ]
        self._begun = False

    def write(self, rows: Sequence[Row]) -> bytes:
        sheet = io.StringIO()
        lines = csv.writer(sheet)
        if not self._begun:
            lines.writerow(self._columns)
            self._begun = True
        lines.writerows(map(self._line, rows))
        return sheet.getvalue().encode()

    def end(self) -> bytes:
        return b"" if self._begun else self.write(())

    def _line(self, row: Row) -> list[Any]:
        line = [row.get(column) for column in self._columns]
        for place, mend in self._mended:
            if line[place] is not None:
                line[place] = mend(line[place])
        return line


def _text(value: Any) -> str:
    text = _plain(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


_MENDED: Final[dict[str, Callable[[Any], str]]] = {
    "time": lambda value: value.isoformat(),
    "flag": lambda value: str(value).lower(),
    "text": _text,
}


_ROW_GROUP: Final = 20_000


class _Parquet:
    """Row groups of several lists each: the footer has an entry per group, and small ones pack badly."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        import pyarrow as arrow
        from pyarrow import parquet

        types = {
            "time": arrow.timestamp("us", tz="UTC"),
            "text": arrow.string(),
            "flag": arrow.bool_(),
            "number": arrow.float64(),
            "count": arrow.int64(),
        }
        self._arrow = arrow
        self._waiting: list[Any] = []
        self._schema = arrow.schema([(column, types[kind_of(column)]) for column in columns])
        self._objects = [column for column in columns if column == "errors"]
        self._file = _Drained()
        self._parquet = parquet.ParquetWriter(self._file, self._schema, compression="zstd")

    def write(self, rows: Sequence[Row]) -> bytes:
        if rows:
            made = [row | {name: _plain(row[name]) for name in self._objects} for row in rows]
            self._waiting.append(self._arrow.RecordBatch.from_pylist(made, schema=self._schema))
        if sum(batch.num_rows for batch in self._waiting) >= _ROW_GROUP:
            self._write_group()
        return self._file.drain()

    def end(self) -> bytes:
        self._write_group()
        self._parquet.close()
        return self._file.drain()

    def _write_group(self) -> None:
        if self._waiting:
            self._parquet.write_table(self._arrow.Table.from_batches(self._waiting))
            self._waiting.clear()


def _plain(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


class _Drained(io.RawIOBase):
    """An append-only file whose bytes are taken as they are written."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        found = bytes(piece)
        self._pieces.append(found)
        self._size += len(found)
        return len(found)

    def tell(self) -> int:
        return self._size

    def drain(self) -> bytes:
        found = b"".join(self._pieces)
        self._pieces.clear()
        return found
