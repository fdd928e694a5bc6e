"""The addresses of media. Files themselves are served before Django (media.serving)."""

from django.urls import include, path

from media import api

api_patterns = [
    path("me/media", api.MediaView.as_view()),
    path("me/media/<str:media_id>", api.MediumView.as_view()),
]

urlpatterns = [path("api/v1/", include(api_patterns))]
