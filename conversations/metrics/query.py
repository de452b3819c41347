"""The query of a metrics request: a range of time, filters, a bucket, a format.

The range consists of whole hours of TIME_ZONE. `from` and `to` are days (`to` is included) or times
(`to` is excluded); the default is the last seven days including today.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, cast
from uuid import UUID

from config.errors import InvalidRequest
from conversations.metrics.dimensions import GROUPS, Group
from conversations.metrics.rollups import start_of_day, zone

Bucket = Literal["hour", "day", "week", "month"]
Format = Literal["json", "csv", "jsonl", "parquet"]

BUCKETS: Final[tuple[Bucket, ...]] = ("hour", "day", "week", "month")
FORMATS: Final[tuple[Format, ...]] = ("json", "csv", "jsonl", "parquet")
DEFAULT_DAYS: Final = 7
LONGEST: Final = {"hour": timedelta(days=32), "day": timedelta(days=1_100)}
_LONGEST: Final = timedelta(days=20 * 366)
_LONGEST_TEXT: Final = 200
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class MetricsQuery:
    """A valid query. `now` is its time: later hours have no numbers yet."""

    begin: datetime
    end: datetime
    now: datetime
    bucket: Bucket
    model: str | None = None
    prompt_version: int | None = None
    dialect: str | None = None
    runner: str | None = None
    user: UUID | None = None
    group: Group | None = None
    compares: bool = False
    format: Format = "json"

    @property
    def first_day(self) -> datetime:
        """Return the beginning of the first whole day in the range."""
        begins = start_of_day(self.begin.astimezone(zone()).date())
        return begins if begins == self.begin else start_of_next_day(begins)

    @property
    def last_day(self) -> datetime:
        """Return the end of the last whole day in the range; an unfinished day counts as whole."""
        begins = start_of_day(self.end.astimezone(zone()).date())
        return start_of_next_day(begins) if begins < self.end and self.end > self.now else begins

    @property
    def is_of_whole_days(self) -> bool:
        """Return whether the range consists of whole days."""
        return self.begin == self.first_day < self.last_day and self.last_day >= self.end

    @property
    def previous_period(self) -> MetricsQuery:
        """Return the query of the previous period, which is as long."""
        return replace(self, begin=self.begin - (self.end - self.begin), end=self.begin)


def start_of_next_day(begins: datetime) -> datetime:
    """Return the beginning of the following day."""
    return start_of_day(begins.astimezone(zone()).date() + _DAY)


def bucket_starts(query: MetricsQuery) -> list[datetime]:
    """Return the beginning of each bucket; the range may cut the first and the last one."""
    start, found = _bucket_of(query.begin, query.bucket), list[datetime]()
    while start < query.end:
        found.append(start)
        start = end_of_bucket(start, query.bucket)
    return found


def end_of_bucket(begin: datetime, bucket: Bucket) -> datetime:
    """Return the beginning of the next bucket."""
    return _bucket_of(begin + _PAST_IT[bucket], bucket)


_PAST_IT: Final = {  # from the beginning of a bucket surely into the next one, and no further
    "hour": timedelta(hours=1),
    "day": timedelta(hours=26),
    "week": timedelta(days=7, hours=12),
    "month": timedelta(days=31, hours=12),
}


def _bucket_of(at: datetime, bucket: Bucket) -> datetime:
    """Return the bucket of a time, as PostgreSQL's date_trunc does (weeks begin on Monday)."""
    if bucket == "hour":
        return _floor(at)
    day = at.astimezone(zone()).date()
    if bucket == "week":
        day -= timedelta(days=day.weekday())
    return start_of_day(day.replace(day=1) if bucket == "month" else day)


def parse_query(parameters: Mapping[str, str]) -> MetricsQuery:
    """Return the query of a request's parameters. Raise InvalidRequest, which says how to correct it."""
    now = datetime.now(UTC)
    begin, end = _range(parameters.get("from", ""), parameters.get("to", ""), now)
    bucket = _choice(parameters, "bucket", BUCKETS) or ("hour" if end - begin <= 2 * _DAY else "day")
    longest = LONGEST.get(bucket, _LONGEST)
    if end - begin > longest:
        raise InvalidRequest(
            f"A range by {bucket} may be {longest.days} days long: ask for less or a longer bucket.",
            code="invalid_range",
        )
    return MetricsQuery(
        begin=begin,
        end=end,
        now=now,
        bucket=cast("Bucket", bucket),
        model=_text(parameters, "model"),
        prompt_version=_version(parameters.get("prompt_version")),
        dialect=_text(parameters, "dialect"),
        runner=_text(parameters, "runner"),
        user=_user(parameters.get("user")),
        group=cast("Group | None", _choice(parameters, "group_by", GROUPS)),
        compares=_choice(parameters, "compare", ("previous",)) is not None,
        format=cast("Format", _choice(parameters, "format", FORMATS) or "json"),
    )


def _range(first: str, last: str, now: datetime) -> tuple[datetime, datetime]:
    end = _moment("to", last, ends=True) if last else _ceiling(now)
    if first:
        begin = _moment("from", first, ends=False)
    else:
        day = (end - timedelta(microseconds=1)).astimezone(zone()).date()
        begin = start_of_day(day - timedelta(days=DEFAULT_DAYS - 1))
    if begin >= end:
        raise InvalidRequest("from must be before to.", code="invalid_range")
    return begin.astimezone(UTC), end.astimezone(UTC)


def _moment(name: str, text: str, *, ends: bool) -> datetime:
    """Return a day or a time, rounded to the beginning or the end of its hour."""
    try:
        if len(text) == 10:
            day = date.fromisoformat(text)
            found = start_of_day(day + _DAY if ends else day)
        else:
            at = datetime.fromisoformat(text.replace(" ", "+"))
            at = at.replace(tzinfo=zone()) if at.tzinfo is None else at
            found = _ceiling(at) if ends else _floor(at)
        if 1990 <= found.year <= 2190:
            return found
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(
        f"{name} must be a day like 2026-11-21 or a time like 2026-11-21T10:00:00Z.",
        code="invalid_range",
    )


def _floor(at: datetime) -> datetime:
    """Return the beginning of the hour; in UTC, where adding an hour is always one hour later."""
    here = at.astimezone(zone())
    past = timedelta(minutes=here.minute, seconds=here.second, microseconds=here.microsecond)
    return at.astimezone(UTC) - past


def _ceiling(at: datetime) -> datetime:
    floor = _floor(at)
    return floor if floor == at else floor + timedelta(hours=1)


def _choice(parameters: Mapping[str, str], name: str, options: tuple[str, ...]) -> str | None:
    found = parameters.get(name)
    if not found:
        return None
    if found not in options:
        raise InvalidRequest(f"{name} must be one of {', '.join(options)}.", code=f"invalid_{name}")
    return found


def _text(parameters: Mapping[str, str], name: str) -> str | None:
    found = parameters.get(name)
    if found is not None and (len(found) > _LONGEST_TEXT or "\x00" in found):
        raise InvalidRequest(
            f"{name} must be a text of at most {_LONGEST_TEXT} characters.", code="invalid_filter"
        )
    return found or None


def _version(text: str | None) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdigit() and int(text[:11]) < 2**31 and len(text) <= 10:
        return int(text)
    raise InvalidRequest("prompt_version must be the id of a prompt version.", code="invalid_filter")


def _user(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        raise InvalidRequest("user must be the id of a user.", code="invalid_user_id") from None
