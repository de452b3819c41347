"""The form of a server or runtime: its address or program, and secrets that are never shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from django import forms
from unfold.widgets import UnfoldBooleanWidget

from prompts.addresses import same_origin


def removal(what: str) -> forms.BooleanField:
    """Return the field by which staff remove the present secret."""
    return forms.BooleanField(label=f"Remove the {what}", required=False, widget=UnfoldBooleanWidget())


class ConnectionForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form with the fields `new_…` and `remove_…` of each of its `secrets`.

    The first of them is sent to the address, so another address needs it entered again.
    """

    peer: ClassVar[str]
    secrets: ClassVar[tuple[str, ...]]
    not_both: ClassVar[str]

    def explain_refusal(self, command: str, args: Sequence[str]) -> str:
        """Return why this program may not be started; "" if it may."""
        raise NotImplementedError

    def clean(self) -> None:
        super().clean()
        facts = self.cleaned_data
        if facts.get("transport") == "stdio":
            self._check_program(facts.get("command") or "", facts.get("args") or ())
        elif "url" in facts and not facts["url"]:
            self.add_error("url", f"Enter the {self.peer}'s address.")
        self._check_kept(self.secrets[0])
        for secret in self.secrets:
            if facts.get(f"new_{secret}") and facts.get(f"remove_{secret}"):
                self.add_error(f"remove_{secret}", self.not_both)

    def _check_program(self, command: str, args: Sequence[str]) -> None:
        if not command:
            self.add_error("command", "Enter the program to start.")
        elif refusal := self.explain_refusal(command, args):
            self.add_error("command", refusal)

    def _check_kept(self, secret: str) -> None:
        """Refuse another address for a stored secret: its editor must not receive it."""
        facts = self.cleaned_data
        replaced = facts.get(f"new_{secret}") or facts.get(f"remove_{secret}")
        kept = getattr(self.instance, f"{secret}_id") and not replaced
        if kept and facts.get("url") and not same_origin(self.initial.get("url") or "", facts["url"]):
            self.add_error("url", f"Another address needs its {secret} entered again, or removed.")
