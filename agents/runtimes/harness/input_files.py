"""The files of a run's message, written where its program can read them; the prompt has their paths."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from mimetypes import guess_extension
from pathlib import Path
from typing import Final

from agents.host_protocol.messages import ContentElement
from agents.host_protocol.run_context import AgentInput

_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,10}")


def write_input_files(agent_input: AgentInput, folder: Path) -> str:
    """Write the files into the folder; return the prompt, with a line per file."""
    if not any(part.type != "text" for part in agent_input.contents):
        return agent_input.text or ""
    return "\n".join(_prompt_lines(agent_input.contents, folder))


def _prompt_lines(contents: tuple[ContentElement, ...], folder: Path) -> Iterator[str]:
    for number, part in enumerate(contents, 1):
        named = f"[{part.file_name or 'Image'}: "
        match part:
            case ContentElement(type="text", text=str(text)):
                yield text
            case ContentElement(type="image_url", image_url=url) if url:
                yield f"{named}{url.url}]"
            case ContentElement(type="file_url", file_url=str(url)):
                yield f"{named}{url}]"
            case ContentElement(image_base64=str(url)) | ContentElement(file_base64=str(url)):
                head, _, data = url.partition(",")
                path = folder / f"{number}{_suffix(part.file_name or '', head)}"
                path.write_bytes(b64decode(data))
                yield f"{named}{path}]"


def _suffix(name: str, head: str) -> str:
    """Return the file name's suffix if it is plain; else that of the file's type."""
    own = Path(name).suffix
    if _SUFFIX.fullmatch(own):
        return own
    return guess_extension(head.removeprefix("data:").partition(";")[0]) or ""
