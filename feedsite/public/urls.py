"""Addresses of public pages. `home` is strangers' front page and members' home timeline."""

from django.urls import include, path

from feedsite.public import api, views

api_patterns = [
    path("tags/trending", api.TrendsView.as_view()),
    path("me/suggestions", api.SuggestionsView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("", views.front, name="home"),
    path("@<str:username>/feed.atom", views.atom_feed, name="feed"),
    path("beside", views.column, name="column"),
    path("robots.txt", views.robots, name="robots"),
    path("sitemap.xml", views.sitemap_index, name="sitemap"),
    path("sitemap-posts-<int:first_id>.xml", views.sitemap_posts, name="sitemap-posts"),
    path("sitemap-people-<int:number>.xml", views.sitemap_people, name="sitemap-people"),
    path("manifest.webmanifest", views.manifest, name="manifest"),
    path("worker.js", views.worker, name="worker"),
    path("offline", views.offline, name="offline"),
]
