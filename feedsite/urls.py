from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.utils.translation import gettext_lazy
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from web import openapi
from web.rest import NotFoundView

admin.autodiscover()
admin.site.index_title = gettext_lazy("Admin")

handler400 = "web.outage.bad_request"
handler403 = "web.outage.permission_denied"
handler404 = "web.outage.not_found"
handler500 = "web.outage.server_error"

# Scripts and styles come from the site itself.
docs = SpectacularSwaggerSplitView.as_view(url_name="schema", permission_classes=[AllowAny], authentication_classes=[])

urlpatterns = [
    # Order matters: home is read most. Names of accounts, items and moderation must precede patterns of relations and
    # live that would match them.
    path("", include("feedsite.public.urls")),
    path("", include("timeline.urls")),
    path("", include("clientapi.urls")),
    path("", include("accounts.urls")),
    path("", include("accounts.about.urls")),
    path("", include("media.urls")),
    path("", include("items.urls")),
    path("", include("community.archives.urls")),
    path("", include("relations.urls")),
    path("", include("notifications.urls")),
    path("", include("moderation.urls")),
    path("", include("discover.urls")),
    path("", include("live.urls")),
    path("", include("seen.urls")),
    path("", include("stream.urls")),
    path("", include("clientapi.other_urls")),
    path(settings.ADMIN_PATH, admin.site.urls),
    path("api/schema", openapi.schema, name="schema"),
    path("api/docs", docs, name="docs"),
    re_path("^api/", NotFoundView.as_view()),
]
