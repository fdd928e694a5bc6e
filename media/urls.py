"""Addresses of media. media.serving sends the public files."""

from django.urls import include, path, re_path

from media import api, views

api_patterns = [
    path("me/media", api.MediaView.as_view()),
    path("me/media/<id:media_id>", api.MediumView.as_view()),
    path("me/media/<id:media_id>/captions", api.CaptionsView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    re_path(
        r"^staff/media/(?P<media_id>[0-9]{1,16})/(?P<size>whole|preview|captions)$", views.staff_file, name="staff-file"
    ),
]
