"""The addresses that granian serves for `http_page`: the site's, and beside them views that do nothing."""

import time

from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from web.rest import ApiView


class ConstantView(APIView):
    """The least that an authenticated DRF view does, with the site's authentication and nothing else of it."""

    def get(self, request: Request) -> Response:
        """A constant as JSON."""
        return Response({"answer": 42})


class CountedConstantView(ApiView):
    """A constant answer under the site's rules: strict envelope, and every call counted against a rate."""

    def get(self, request: Request) -> Response:
        """A constant as JSON."""
        return Response({"answer": 42})


def processor_time(request: HttpRequest) -> HttpResponse:
    """User and system seconds of this process, all threads, so far."""
    return HttpResponse(repr(time.process_time()))


urlpatterns = [
    path("bench/processor", processor_time),
    path("bench/constant", ConstantView.as_view()),
    path("bench/counted", CountedConstantView.as_view()),
    path("", include("feedsite.urls")),
]
