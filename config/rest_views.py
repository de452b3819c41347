"""The base of our REST framework views; apart from `config.rest`, which the framework itself imports."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from rest_framework.request import Request
from rest_framework.views import APIView

from config.auth.access import Needs, method_asked
from config.auth.bearer import Caller


class View(APIView):
    """A view that states what each of its methods needs of the caller."""

    needs: ClassVar[Needs]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if need := self.needs.get(method_asked(request.method)):
            need.check_sync(cast("Caller", request.auth), request.user)
