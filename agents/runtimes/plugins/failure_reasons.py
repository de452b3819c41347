"""Why a plugin runtime cannot be reached, in words on which staff can act, without secrets."""

from __future__ import annotations

from django.conf import settings

from agents.runtimes.plugins.channel import Refused
from agents.runtimes.plugins.runtime import Runtime
from agents.runtimes.plugins.transports import PipeClosed, ProgramRefused
from prompts import outgoing_connections
from prompts.addresses import REFUSED
from prompts.endpoints.secrets import SecretUnreadable


def explain(error: BaseException, runtime: Runtime) -> str:
    """Return one sentence about a connection's failure."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    match error:
        case outgoing_connections.AddressRefused():
            return REFUSED
        case ProgramRefused() | PipeClosed():
            return str(error)
        case SecretUnreadable():
            return "The stored token cannot be opened: enter it again."
        case Refused() if "cannot be rebound" in str(error) or "cannot be changed" in str(error):
            return "This runtime already belongs to another Host: restart it, or give this one another."
        case Refused():
            return f"The runtime refuses: {_without_token(str(error), runtime)[:300]}"
        case _ if status in (401, 403):
            return f"The address answers {status}: check it, and the token."
        case _ if status:
            return f"The address answers {status}: it is no plugin runtime."
        case TimeoutError():
            return f"No answer within {settings.PLUGIN_CONNECT_S:g} seconds."
        case FileNotFoundError() | PermissionError() | NotADirectoryError():
            return "The program or its directory is not there, or not executable."
        case OSError():
            return "Nothing answers at this address."
    return f"The runtime does not speak as it should ({type(error).__name__})."


def _without_token(text: str, runtime: Runtime) -> str:
    try:
        token = runtime.token()
    except SecretUnreadable:
        return ""
    return text.replace(token, "***") if token else text
