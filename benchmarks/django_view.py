"""The second baseline: what a Django developer writes by hand, with the openai SDK.

It keeps nothing, asks nobody who they are, and its run ends with its reader. `MODEL_PORT` says where the
fake model is.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path
from openai import AsyncOpenAI

settings.configure(
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="loopback only",
)
_model = AsyncOpenAI(
    base_url=f"http://127.0.0.1:{os.environ.get('MODEL_PORT', '0')}/v1", api_key="none", max_retries=0
)


async def _deltas(prompt: str) -> AsyncIterator[bytes]:
    chunks = await _model.chat.completions.create(
        model="bench", messages=[{"role": "user", "content": prompt}], stream=True
    )
    async for chunk in chunks:
        if chunk.choices and chunk.choices[0].delta.content:
            yield f"data: {json.dumps({'delta': chunk.choices[0].delta.content})}\n\n".encode()


async def stream(request: HttpRequest) -> StreamingHttpResponse:
    """`POST /stream {"prompt"}` answers with `data: {"delta": …}` frames."""
    prompt = json.loads(request.body)["prompt"]
    return StreamingHttpResponse(_deltas(prompt), content_type="text/event-stream")


urlpatterns = [path("stream", stream)]
app = get_asgi_application()
