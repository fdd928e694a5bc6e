from django.urls import include, path

from stream import api

api_patterns = [
    path("stream", api.StreamView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
]
