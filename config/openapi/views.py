"""`/api/schema/` and `/api/docs/`: the OpenAPI document, and Swagger UI which shows it."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request


class OpenAPIDocument(SpectacularAPIView):
    """The document in JSON or YAML. It is the same for everybody, so a process makes each once."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        renderer = request.accepted_renderer
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        name = f"Parley.{renderer.format}"
        return HttpResponse(
            _rendered(renderer.format),
            content_type=f"{renderer.media_type}{charset}",
            headers={"Content-Disposition": f'inline; filename="{name}"'},
        )


class APIDocs(SpectacularSwaggerSplitView):
    """Swagger UI, with a quick resolver of references (`templates/config/api_docs.js`)."""

    http_method_names = ("get", "head")
    template_name_js = "config/api_docs.js"


_RENDERERS: Final = {"json": OpenApiJsonRenderer, "yaml": OpenApiYamlRenderer}


@cache
def _rendered(form: str) -> str | bytes:
    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    renderer = _RENDERERS[form]
    return renderer().render(document, renderer.media_type, {})
