"""ThinkingML v4.5, the text of `xml_plaintext` (specs/text-run.md §5): validator, repair, instructions.

It is pure. A text that one accepts the other leaves unchanged, so both read tags through `tags`.
"""

from xml.sax.saxutils import escape

from agents.runners.thinkingml.form import form_instructions, is_thinkingml
from agents.runners.thinkingml.repair import Repair
from agents.runners.thinkingml.validate import validate_thinkingml

__all__ = ["Repair", "escape", "form_instructions", "is_thinkingml", "validate_thinkingml"]
