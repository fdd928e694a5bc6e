"""Addresses of Mastodon's streams. Only the stream process opens a stream. Others redirect to it."""

from django.urls import path

from clientapi.rest.streaming import HealthView, StreamingView

urlpatterns = [
    path("streaming", StreamingView.as_view()),
    path("streaming/", StreamingView.as_view()),
    path("streaming/health", HealthView.as_view()),
    path("streaming/health/", HealthView.as_view()),
    path("streaming/<path:path>", StreamingView.as_view()),
]
