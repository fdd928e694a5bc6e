"""The addresses of home."""

from django.urls import include, path

from timeline import api, views

api_patterns = [
    path("timeline/home", api.HomeView.as_view()),
    path("timeline/home/new", api.HomeNewView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("new", views.news, name="news"),
    path("welcome", views.welcome, name="welcome"),
    path("welcome/people", views.welcome_people, name="welcome-people"),
    path("people", views.find_people, name="find-people"),
    path("position", views.keep_position, name="position"),
]
