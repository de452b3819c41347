"""ThinkingML v4.5, the text of `xml_plaintext` (specs/text-run.md §5): a validator and a repair.

Pure. What one accepts the other leaves alone, so both read tags through `tags`.
"""

from agents.runners.thinkingml.repair import Repair
from agents.runners.thinkingml.validate import validate_thinkingml

__all__ = ["Repair", "validate_thinkingml"]
