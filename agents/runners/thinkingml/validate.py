"""The validation of a text as ThinkingML v4.5, which returns its first fault.

The checks run in the order of `_CHECKS`, each on a text that has passed those before it. Nothing but
white space may be outside the blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from agents.runners.thinkingml import queries
from agents.runners.thinkingml.tags import (
    LONGEST_GAP,
    LONGEST_QUERIES,
    PARSING_ERROR,
    PHASE,
    STRUCTURE,
    TAG,
)

_GAP: Final = rf"\s{{0,{LONGEST_GAP}}}"
_PRELUDE: Final = re.compile(
    rf"{_GAP}(?:<(think|serp)>(?:(?!</?(?:think|serp)>).)*</\1>{_GAP})*", re.DOTALL
)
_QUERIES: Final = re.compile(
    r"<!--\s{0,64}<serp_queries>(?P<body>(?:[^<]|<(?!/?serp_queries>))*)</serp_queries>\s{0,64}-->"
    r"(?P<gap>\s*)\Z"
)

Check = Callable[["_Reply"], str | None]


def validate_thinkingml(text: str) -> str | None:
    """Return None if the text is ThinkingML, else the reason (specs/text-run.md §5)."""
    reply = _Reply(text)
    return next((reason for check in _CHECKS if (reason := check(reply))), None)


@dataclass
class _Reply:
    """A text and its parts; each part only for a text that has it."""

    text: str

    @cached_property
    def tags(self) -> list[re.Match[str]]:
        return list(TAG.finditer(self.text))

    @cached_property
    def counts(self) -> Counter[tuple[str, str]]:
        return Counter((tag["mark"], tag["name"].lower()) for tag in self.tags)

    def place(self, tag: str) -> int:
        return self.text.find(tag)

    def between(self, begin: str, end: str) -> str:
        return self.text[self.place(begin) + len(begin) : self.place(end)]

    @cached_property
    def thinking(self) -> str:
        return self.between("<thinking>", "</thinking>")

    @cached_property
    def final(self) -> str:
        return self.between("<final>", "</final>")

    @cached_property
    def queries(self) -> str:
        found = _QUERIES.search(self.final)
        return found["body"] if found else ""

    @cached_property
    def phase_tags(self) -> list[re.Match[str]]:
        return [tag for tag in self.tags if tag["name"] == "phase"]

    @cached_property
    def phase_ids(self) -> list[int]:
        begin, end = self.place("<thinking>"), self.place("</thinking>")
        inside = (tag[0] for tag in self.phase_tags if begin < tag.start() < end)
        return [int(found[1]) for text in inside if (found := PHASE.fullmatch(text))]

    @cached_property
    def phases(self) -> list[str]:
        """The text between the tags of each phase, in a text whose phase tags alternate."""
        pairs = zip(self.phase_tags[::2], self.phase_tags[1::2], strict=False)
        return [self.text[begin.end() : end.start()] for begin, end in pairs]

    @cached_property
    def outside_phases(self) -> str:
        """The text of the thinking that is in no phase."""
        place, parts = self.place("<thinking>") + len("<thinking>"), []
        for begin, end in zip(self.phase_tags[::2], self.phase_tags[1::2], strict=False):
            parts.append(self.text[place : begin.start()])
            place = end.end()
        return "".join(parts) + self.text[place : self.place("</thinking>")]


def _require(reason: str, holds: Callable[[_Reply], object]) -> Check:
    """Return a check with one reason; `holds` is true of a text without the fault."""
    return lambda reply: None if holds(reply) else reason


def _require_count(name: str, *allowed: int) -> Check:
    """Require as many closing as opening tags of a block, and an allowed number of them."""

    def is_allowed(reply: _Reply) -> bool:
        opened, closed = reply.counts["", name], reply.counts["/", name]
        return opened == closed and opened in allowed

    return _require(f"invalid_{name}_block_count", is_allowed)


def _has_required(reply: _Reply) -> bool:
    """Require the exact tags; that each exists, in some spelling, is checked before."""
    return all(tag in reply.text for tag in ("<thinking>", "</thinking>", "<final>", "</final>"))


def _thinking_in_order(reply: _Reply) -> bool:
    begin = reply.place("<thinking>")
    prelude = reply.text[: min(begin, reply.place("<final>"))]
    late_serp = "<serp>" in reply.text and "<serp>" not in prelude
    whole = _PRELUDE.fullmatch(prelude) and "<think>" not in reply.text[begin:]
    return bool(reply.place("</thinking>") > begin and (late_serp or whole))


def _final_in_order(reply: _Reply) -> bool:
    end = reply.place("</final>")
    after = reply.text[end + len("</final>") :]
    early = reply.place("<final>") < reply.place("</thinking>")  # which has a reason of its own
    last = early or (not after.strip() and len(after) <= LONGEST_GAP)
    return reply.place("<final>") < end and last


def _find_unexpected(reply: _Reply) -> str | None:
    """Find an unexpected tag; phases are checked later, because their tags have attributes."""
    found = (tag["name"] for tag in reply.tags if tag["name"] != "phase" and not _is_canonical(tag))
    return next((f"unexpected_tag:{name}" for name in found), None)


def _is_canonical(tag: re.Match[str]) -> bool:
    return tag["name"] in STRUCTURE and tag[0] == f"<{tag['mark']}{tag['name']}>"


def _blocks_match(reply: _Reply) -> bool:
    tags = reply.phase_tags
    in_turn = [tag["mark"] for tag in tags] == ["", "/"] * len(reply.phase_ids)
    exact = all(PHASE.fullmatch(tag[0]) or tag[0] == "</phase>" for tag in tags)
    first, last = tags[0].start(), tags[-1].start()
    inside = reply.place("<thinking>") < first < last < reply.place("</thinking>")
    return in_turn and exact and inside and not reply.outside_phases.strip()


def _has_titles(reply: _Reply) -> bool:
    each = all(
        phase.lstrip().startswith("<title>")
        and (phase.count("<title>"), phase.count("</title>")) == (1, 1)
        for phase in reply.phases
    )
    count = len(reply.phases)
    return each and reply.counts["", "title"] == reply.counts["/", "title"] == count


def _has_queries(reply: _Reply) -> bool:
    counts = reply.final.count("<serp_queries>"), reply.final.count("</serp_queries>")
    found = _QUERIES.search(reply.final) if counts == (1, 1) else None
    return bool(found and len(found["body"]) <= LONGEST_QUERIES and len(found["gap"]) <= LONGEST_GAP)


_CHECKS: Final[tuple[Check, ...]] = (
    _require("empty_reply", lambda reply: reply.text.strip()),
    _require("parsing_error_marker", lambda reply: PARSING_ERROR not in reply.text),
    _require_count("thinking", 1),
    _require_count("final", 1),
    _require_count("serp", 0, 1),
    _require_count("think", 0, 1),
    _require("missing_required_blocks", _has_required),
    _require("invalid_thinking_order", _thinking_in_order),
    _require("invalid_final_order", _final_in_order),
    _require(
        "invalid_sequence_serp_thinking",
        lambda reply: reply.place("</serp>") <= reply.place("<thinking>"),
    ),
    _require(
        "invalid_sequence_thinking_final",
        lambda reply: reply.place("</thinking>") <= reply.place("<final>"),
    ),
    _require(
        "final_not_immediately_after_thinking",
        lambda reply: not reply.between("</thinking>", "<final>").strip(),
    ),
    _find_unexpected,
    _require("missing_thinking_content", lambda reply: reply.thinking.strip()),
    _require("missing_phase", lambda reply: reply.phase_ids),
    _require("phase_id_not_start_from_1", lambda reply: reply.phase_ids[0] == 1),
    _require(
        "phase_id_not_strict_increment",
        lambda reply: reply.phase_ids == list(range(1, len(reply.phase_ids) + 1)),
    ),
    _require("phase_block_mismatch", _blocks_match),
    _require("invalid_title_count_in_phase", _has_titles),
    _require("missing_final_content", lambda reply: reply.final.strip()),
    _require("missing_or_invalid_serp_queries_block", _has_queries),
    lambda reply: queries.fault_of(reply.queries),
)
