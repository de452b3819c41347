"""The instructions for a model whose text is delivered as ThinkingML v4.5 (specs/text-run.md §5).

Without them every model answers in plain Markdown, and a client of `xml_plaintext` gets the repair's
wrapper instead of a reply that streams.
"""

from __future__ import annotations

from typing import Final

from agents.requests import ResultMode

FORM: Final = """# The form of your reply
Your reply is ThinkingML v4.5: the blocks below, in this order, and nothing but white space before, between and after them.

<thinking>
<phase id="1">
<title>A few words</title>
What you consider in this step.
</phase>
</thinking>
<final>
Your answer.
<!-- <serp_queries>
["a search query", "another one"]
</serp_queries> -->
</final>

- `<thinking>` holds one or more phases, numbered 1, 2, 3 and so on. Each begins with exactly one `<title>`. The user sees them as the steps of your work: keep them short, in the language of the answer.
- `<final>` holds the whole answer, in Markdown. What is said above about how to answer is about what stands there.
- `<final>` ends with the comment shown above, with a JSON array of at most 5 different strings of at most 80 characters each: what would be worth searching for next. Without any it is `[]`.
- Write these tags exactly as shown, `<thinking>` and `<final>` once each, and no other tags: no HTML, no other XML, no code fence around the whole. To write about a tag, write `&lt;` for `<`.
- When you only call a tool, write no text. The reply that follows its result has this form."""  # noqa: E501


def is_thinkingml(mode: ResultMode | None) -> bool:
    """Return whether the text of a run in this mode is delivered as ThinkingML."""
    return mode in ("xml_plaintext", "auto")  # `auto` that begins with text is the former


def form_instructions(mode: ResultMode | None) -> str:
    """Return the instructions on form for a run in this mode; "" if the form is free."""
    return FORM if is_thinkingml(mode) else ""
