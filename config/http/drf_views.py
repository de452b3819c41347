"""The base of our REST framework views; apart from `drf_plugins`, which the framework itself imports."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.utils import OpenApiExample, OpenApiRequest
from rest_framework.request import Request
from rest_framework.views import APIView

from config.audit.recording import acting_in
from config.auth.bearer import Caller
from config.auth.requirements import Needs, effective_method


def published(name: str) -> dict[str, Any]:
    """A schema of the OpenAPI document, by its name there; `config.openapi` makes it."""
    return {"$ref": f"#/components/schemas/{name}"}


def json_of(name: str, **examples: Any) -> dict[str, Any]:
    """A body in JSON that such a schema describes; a test sends each of its examples."""
    shown = [OpenApiExample(each, value, request_only=True) for each, value in examples.items()]
    return {"application/json": OpenApiRequest(published(name), examples=shown)}


class View(APIView):
    """A view that states what each of its methods needs of the caller."""

    needs: ClassVar[Needs]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """What is changed is recorded as done by the caller."""
        with acting_in(request):
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if need := self.needs.get(effective_method(request.method)):
            need.check_sync(cast("Caller", request.auth), request.user)
