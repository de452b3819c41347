"""What cannot be read as HTTP never reaches the application, and gets the shape of every other error."""

from __future__ import annotations

import json
from uuid import uuid4

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from config import errors


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol, but for its answer to a request that it cannot read."""

    def send_400_response(self, msg: str) -> None:
        """Answer 400 `malformed_request` and hang up: where the next request begins is unknown."""
        request_id = uuid4().hex
        body = json.dumps(errors.body(errors.MalformedRequest()) | {"request_id": request_id}).encode()
        head = (
            "HTTP/1.1 400 Bad Request\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(body)}\r\n"
            f"x-request-id: {request_id}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
