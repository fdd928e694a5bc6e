"""Every address of the site."""

from django.contrib import admin
from django.urls import include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from accounts import api as accounts_api
from feedsite import health, openapi
from feedsite.rest import NotFoundView
from items import api as items_api
from relations import api as relations_api
from timeline import api as timeline_api

handler400 = "feedsite.outage.bad_request"
handler403 = "feedsite.outage.permission_denied"
handler404 = "feedsite.outage.not_found"
handler500 = "feedsite.outage.server_error"

api = [
    path("users", accounts_api.UsersView.as_view()),
    path("users/me", accounts_api.MeView.as_view()),
    path("auth/token", accounts_api.TokenView.as_view()),
    path("users/<str:username>", items_api.ProfileView.as_view()),
    path("users/<str:username>/items", items_api.ProfileItemsView.as_view()),
    path("users/<str:username>/followers", relations_api.FollowersView.as_view()),
    path("users/<str:username>/following", relations_api.FollowingView.as_view()),
    path("users/<str:username>/follow", relations_api.FollowView.as_view()),
    path("users/<str:username>/block", relations_api.BlockView.as_view()),
    path("users/<str:username>/mute", relations_api.MuteView.as_view()),
    path("items", items_api.ItemsView.as_view()),
    path("items/<str:item_id>", items_api.ItemView.as_view()),
    path("items/<str:item_id>/replies", items_api.RepliesView.as_view()),
    path("timeline/home", timeline_api.HomeView.as_view()),
    path("timeline/home/new", timeline_api.HomeNewView.as_view()),
]

# Script and styles come from the site itself.
docs = SpectacularSwaggerSplitView.as_view(url_name="schema", permission_classes=[AllowAny], authentication_classes=[])

urlpatterns = [
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("api/v1/", include(api)),
    path("api/schema", openapi.schema, name="schema"),
    path("api/docs", docs, name="docs"),
    re_path("^api/", NotFoundView.as_view()),
]
