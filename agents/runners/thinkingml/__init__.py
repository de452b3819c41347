"""ThinkingML v4.5, the text of `xml_plaintext` (specs/text-run.md §5): a validator and a repair, and
what a model is told of it.

Pure. What one accepts the other leaves alone, so both read tags through `tags`.
"""

from agents.runners.thinkingml.form import form_for, is_asked
from agents.runners.thinkingml.output import escape
from agents.runners.thinkingml.repair import Repair
from agents.runners.thinkingml.validate import validate_thinkingml

__all__ = ["Repair", "escape", "form_for", "is_asked", "validate_thinkingml"]
