"""The form of a candidate's parameters, validated against the protocol of its endpoint."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from prompts.models import OWN_PRICE, ModelCandidate, ProviderDialect

FIELDS: Final = (
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "reasoning_effort",
    "reasoning_budget",
)
_IGNORED: Final[dict[str, frozenset[str]]] = {
    ProviderDialect.CHAT_COMPLETIONS: frozenset({"reasoning_budget"}),
    ProviderDialect.RESPONSES: frozenset(
        {"frequency_penalty", "presence_penalty", "stop", "seed", "reasoning_budget"}
    ),
    ProviderDialect.ANTHROPIC: frozenset({"frequency_penalty", "presence_penalty", "seed"}),
    ProviderDialect.GEMINI: frozenset(),
    ProviderDialect.DEMO: frozenset(FIELDS),
}
_MOST_STOPS: Final = {ProviderDialect.CHAT_COMPLETIONS: 4, ProviderDialect.GEMINI: 5}
_LEAST_THOUGHT: Final = 1024


def explain_ignored() -> SafeString:
    """Return, as HTML, the parameters that each protocol does not support."""
    rows = [
        (dialect, ", ".join(name for name in FIELDS if name in left))
        for dialect, left in _IGNORED.items()
    ]
    return format_html(
        "Values of a request take precedence, but cannot exceed max tokens. Empty: the provider's "
        "default. Parameters that a protocol does not support cannot be set:<br>{}",
        format_html_join("", "<b>{}</b>: {}<br>", ((name, left or "none") for name, left in rows)),
    )


class CandidateForm(forms.ModelForm):  # type: ignore[type-arg]
    """A candidate; a parameter that its protocol does not support is an error, not ignored."""

    class Meta:
        model = ModelCandidate
        fields: ClassVar = ["position", "endpoint", "model", *FIELDS, *OWN_PRICE]

    def clean(self) -> None:
        super().clean()
        facts = self.cleaned_data
        endpoint = facts.get("endpoint")
        if endpoint is None:
            return
        dialect = ProviderDialect(endpoint.dialect)
        for name in FIELDS:
            if name in _IGNORED[dialect] and facts.get(name) not in (None, "", []):
                self.add_error(name, f"{dialect} does not support this. Leave it empty.")
        for name, message in _find_faults(dialect, facts):
            self.add_error(name, message)


def _find_faults(dialect: ProviderDialect, facts: dict[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    most = _MOST_STOPS.get(dialect)
    if most is not None and len(facts.get("stop") or ()) > most:
        found.append(("stop", f"{dialect} allows at most {most}."))
    if dialect != ProviderDialect.ANTHROPIC:
        return found
    temperature, budget = facts.get("temperature"), facts.get("reasoning_budget")
    if temperature is not None and temperature > 1:
        found.append(("temperature", f"{dialect} allows at most 1."))
    if temperature is not None and facts.get("top_p") is not None:
        found.append(("top_p", f"{dialect} allows temperature or top p, not both."))
    if budget is not None and budget < _LEAST_THOUGHT:
        found.append(("reasoning_budget", f"{dialect} needs at least {_LEAST_THOUGHT} tokens."))
    if budget is not None and facts.get("max_tokens") and facts["max_tokens"] <= budget:
        found.append(("max_tokens", "Enter more than the reasoning budget, which counts too."))
    return found
