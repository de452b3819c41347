"""What the stories of several clients have in common: the model's answers, and how it is asked."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from tests.support.fakes.fake_model import Answer, text, tool_calls
from tests.support.pictures import picture

HI: Final[Answer] = text("Hi.")
WEATHER_CALL: Final = tool_calls(("call_1", "get_weather", '{"city": "Ulm"}'))
WARM: Final = ['assistant calls get_weather {"city": "Ulm"}', "tool: 21 °C"]
WARM_IN_ULM: Final = ['assistant calls get_weather {"city": "Ulm"}', "tool: 21 °C in Ulm"]
FORCED: Final = {"type": "function", "function": {"name": "get_weather"}}
CITY: Final = {"name": "Ulm", "people": 128_000}
RIVER: Final = {"name": "Danube", "length_km": 2850.0}
CITY_TEXT: Final = json.dumps(CITY)
RIVER_TEXT: Final = json.dumps(RIVER)
UNKNOWN_MODEL: Final = "This model is not available."
"""How the refusal of a model begins that nobody has."""


def one_form(body: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema that the model's answer is held to."""
    form: dict[str, Any] = body["response_format"]["json_schema"]["schema"]
    return form


def image_url() -> str:
    return "data:image/png;base64," + base64.b64encode(picture("PNG", (32, 20))).decode()
