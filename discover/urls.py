from django.urls import include, path, re_path

from discover import api, history_api, history_views, views

api_patterns = [
    path("discover/feed", api.DiscoverView.as_view()),
    path("items/<id:item_id>/not-interested", history_api.NotInterestedView.as_view()),
    path("me/history", history_api.HistoryView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("discover", views.discover, name="discover"),
    path("items/<number:item_id>/not-interested", history_views.not_interested, name="not-interested"),
    path("items/<number:item_id>/interested", history_views.interested, name="interested"),
    path("history", history_views.history, name="history"),
    path("history/not-interested", history_views.unwanted, name="unwanted"),
    re_path(
        f"^history/(?P<verb>{'|'.join(history_views.VERBS)})$", history_views.change_history, name="history-change"
    ),
]
