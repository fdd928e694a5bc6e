from django.urls import include, path

from live import api, feed_api, host_views, views

api_patterns = [
    path("live/feed", feed_api.LiveFeedView.as_view()),
    path("live/sessions", api.LiveSessionsView.as_view()),
    path("live/sessions/<id:session_id>", api.LiveSessionView.as_view()),
    path("live/sessions/<id:session_id>/start", api.StartView.as_view()),
    path("live/sessions/<id:session_id>/end", api.EndView.as_view()),
    path("live/sessions/<id:session_id>/reminder", api.ReminderView.as_view()),
    path("users/<str:username>/live", api.UserSessionsView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("live", views.live, name="live"),
    path("live/news", views.news, name="live-news"),
    path("live/own", host_views.own_sessions, name="live-own"),
    path("live/new", host_views.plan, name="live-plan"),
    path("live/<number:session_id>", views.show_session, name="live-session"),
    path("live/<number:session_id>/edit", host_views.edit, name="live-edit"),
    path("live/<number:session_id>/remind", views.remind, name="live-remind"),
    path("live/<number:session_id>/forget", views.forget_reminder, name="live-forget"),
    path("live/<number:session_id>/<slug:verb>", host_views.apply_host_action, name="live-change"),
]
