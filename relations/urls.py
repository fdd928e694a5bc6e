"""The addresses of follows, blocks and mutes."""

from django.urls import include, path, re_path

from relations import api, csv_views, views

VERB = "|".join(views.VERBS)

api_patterns = [
    path("me/follow-requests", api.RequestsView.as_view()),
    path("me/follow-requests/<str:username>/accept", api.AcceptView.as_view()),
    path("me/follow-requests/<str:username>/reject", api.RejectView.as_view()),
    path("me/blocks", api.BlocksView.as_view()),
    path("me/mutes", api.MutesView.as_view()),
    path("users/<str:username>/follower", api.FollowerView.as_view()),
    path("users/<str:username>/followers", api.FollowersView.as_view()),
    path("users/<str:username>/following", api.FollowingView.as_view()),
    path("users/<str:username>/follow", api.FollowView.as_view()),
    path("users/<str:username>/block", api.BlockView.as_view()),
    path("users/<str:username>/mute", api.MuteView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("follow-requests", views.requests, name="follow-requests"),
    path("settings/mutes", views.mutes, name="settings-mutes"),
    path("settings/import-export", csv_views.lists, name="settings-import-export"),
    path("settings/export/<str:kind>.csv", csv_views.export, name="settings-export"),
    path("settings/blocks", views.blocks, name="settings-blocks"),
    path("@<str:username>/mute-for", views.mute_for, name="mute-for"),
    path("@<str:username>/followers", views.followers, name="followers"),
    path("@<str:username>/following", views.following, name="following"),
    re_path(f"^@(?P<username>[^/]+)/(?P<verb>{VERB})$", views.relate, name="relate"),
]
