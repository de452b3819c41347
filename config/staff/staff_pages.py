"""Pages in admin that are more, or less, than a list and a form."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from unfold.decorators import action

from config.staff.lists import ModelAdmin


class ReadOnly:
    """Admin that shows and never saves."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReportAdmin(ReadOnly, ModelAdmin):
    """A page of figures in the place of a list."""

    title: ClassVar[str]
    template: ClassVar[str]

    def figures(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the template shows."""
        raise NotImplementedError

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **more: Any) -> HttpResponse:
        return HttpResponseRedirect("../..")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        shown = {"title": self.title} | self.figures(request)
        return self.render_page(request, self.template, **shown)


class ConnectionAdmin(ModelAdmin):
    """Things with an address and `secrets` that are entered and never shown; staff can test them."""

    secrets: ClassVar[tuple[str, ...]]
    test_template: ClassVar[str]
    actions_detail = ("test_connection",)

    def test(self, row: Any) -> dict[str, Any]:
        """Connect, and return what the template shows of it."""
        raise NotImplementedError

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset(request)
        return found.select_related(*self.secrets)

    @method_decorator(sensitive_post_parameters())
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().changeform_view(request, *args, **kwargs)
        return response

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_model(request, row)

    @action(  # type: ignore[untyped-decorator]
        description="Test connection", url_path="test", permissions=["change"]
    )
    def test_connection(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what would be tested (GET), or test it and show the result (POST)."""
        row: Model | None = self.get_object(request, object_id)
        if row is None:
            raise Http404
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        result = self.test(row) if request.method == "POST" else {}
        return self.render_page(request, self.test_template, title=f"Test {row}", row=row, **result)
