from django.urls import include, path

from timeline import api, list_views, views

api_patterns = [
    path("timeline/home", api.HomeView.as_view()),
    path("timeline/home/new", api.HomeNewView.as_view()),
    path("me/lists/<id:list_id>/timeline", api.ListTimelineView.as_view()),
    path("me/lists/<id:list_id>/timeline/new", api.ListNewView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("new", views.news, name="news"),
    path("lists/<number:list_id>", list_views.show_list, name="list"),
    path("lists/<number:list_id>/new", list_views.list_news, name="list-news"),
    path("suggestions/dismiss", views.dismiss_suggestions, name="dismiss-suggestions"),
    path("welcome", views.welcome, name="welcome"),
    path("welcome/people", views.welcome_people, name="welcome-people"),
    path("people", views.find_people, name="find-people"),
    path("position", views.update_position, name="position"),
]
