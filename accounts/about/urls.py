from django.urls import include, path, re_path

from accounts.about import api, views
from accounts.about.colours import VERSION

urlpatterns = [
    path("api/v1/", include([path("site", api.SiteView.as_view())])),
    path("about", views.about, name="about"),
    path("terms", views.terms, name="terms"),
    path("privacy", views.privacy, name="privacy"),
    path("announcement/dismiss", views.dismiss_announcement, name="dismiss-announcement"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("about/icons/<int:logo_id>/<slug:name>.png", views.icon, name="icon"),
    re_path(rf"^about/theme-v{VERSION}-(?P<code>[0-9a-f]{{6}})\.css\Z", views.theme, name="theme"),
]
