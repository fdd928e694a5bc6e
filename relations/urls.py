"""The addresses of follows, blocks and mutes."""

from django.urls import include, path, re_path

from relations import api, views

VERB = "|".join(views.VERBS)

api_patterns = [
    path("users/<str:username>/followers", api.FollowersView.as_view()),
    path("users/<str:username>/following", api.FollowingView.as_view()),
    path("users/<str:username>/follow", api.FollowView.as_view()),
    path("users/<str:username>/block", api.BlockView.as_view()),
    path("users/<str:username>/mute", api.MuteView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("@<str:username>/followers", views.followers, name="followers"),
    path("@<str:username>/following", views.following, name="following"),
    re_path(f"^@(?P<username>[^/]+)/(?P<verb>{VERB})$", views.relate, name="relate"),
]
