"""Every address of the site."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.utils.translation import gettext_lazy
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny

from accounts import api as accounts_api
from accounts import views as accounts_views
from discover import api as discover_api
from discover import history_api, history_views
from discover import views as discover_views
from feedsite import openapi
from feedsite.rest import NotFoundView
from items import api as items_api
from items import views as items_views
from live import api as live_api
from live import feed_api as live_feed_api
from live import views as live_views
from moderation import api as moderation_api
from moderation import views as moderation_views
from notifications import api as notifications_api
from notifications import views as notifications_views
from relations import api as relations_api
from relations import views as relations_views
from seen import api as seen_api
from timeline import api as timeline_api
from timeline import views as timeline_views

admin.site.site_header = admin.site.site_title = "feedsite"
admin.site.index_title = gettext_lazy("Administration")

handler400 = "feedsite.outage.bad_request"
handler403 = "feedsite.outage.permission_denied"
handler404 = "feedsite.outage.not_found"
handler500 = "feedsite.outage.server_error"

api = [
    # Patterns are tried in this order; home is read most.
    path("timeline/home", timeline_api.HomeView.as_view()),
    path("timeline/home/new", timeline_api.HomeNewView.as_view()),
    path("stream", timeline_api.StreamView.as_view()),
    path("users", accounts_api.UsersView.as_view()),
    path("users/me", accounts_api.MeView.as_view()),
    path("users/me/password", accounts_api.PasswordView.as_view()),
    path("users/me/sessions", accounts_api.SessionsView.as_view()),
    path("users/me/delete", accounts_api.DeleteMeView.as_view()),
    path("users/me/export", accounts_api.ExportView.as_view()),
    path("auth/token", accounts_api.TokenView.as_view()),
    path("users/<str:username>", items_api.ProfileView.as_view()),
    path("users/<str:username>/items", items_api.ProfileItemsView.as_view()),
    path("users/<str:username>/followers", relations_api.FollowersView.as_view()),
    path("users/<str:username>/following", relations_api.FollowingView.as_view()),
    path("users/<str:username>/follow", relations_api.FollowView.as_view()),
    path("users/<str:username>/block", relations_api.BlockView.as_view()),
    path("users/<str:username>/mute", relations_api.MuteView.as_view()),
    path("search", items_api.SearchView.as_view()),
    path("tags/<str:tag>/items", items_api.TagItemsView.as_view()),
    path("notifications", notifications_api.NotificationsView.as_view()),
    path("notifications/unread", notifications_api.UnreadView.as_view()),
    path("notifications/read", notifications_api.ReadView.as_view()),
    path("items", items_api.ItemsView.as_view()),
    path("items/<str:item_id>", items_api.ItemView.as_view()),
    path("items/<str:item_id>/like", items_api.LikeView.as_view()),
    path("items/<str:item_id>/repost", items_api.RepostView.as_view()),
    path("items/<str:item_id>/replies", items_api.RepliesView.as_view()),
    path("seen/plays", seen_api.PlaysView.as_view()),
    path("seen/plays/batch", seen_api.PlaysBatchView.as_view()),
    path("seen/issued", seen_api.IssuedView.as_view()),
    path("seen/filter", seen_api.FilterView.as_view()),
    path("discover/feed", discover_api.DiscoverView.as_view()),
    path("live/feed", live_feed_api.LiveFeedView.as_view()),
    path("live/sessions", live_api.LiveSessionsView.as_view()),
    path("live/sessions/<str:session_id>", live_api.LiveSessionView.as_view()),
    path("live/sessions/<str:session_id>/start", live_api.StartView.as_view()),
    path("live/sessions/<str:session_id>/end", live_api.EndView.as_view()),
    path("live/sessions/<str:session_id>/reminder", live_api.ReminderView.as_view()),
    path("users/<str:username>/live", live_api.UserSessionsView.as_view()),
    path("items/<str:item_id>/report", moderation_api.ReportView.as_view()),
    path("live/sessions/<str:session_id>/report", moderation_api.SessionReportView.as_view()),
    path("items/<str:item_id>/not-interested", history_api.NotInterestedView.as_view()),
    path("me/history", history_api.HistoryView.as_view()),
]

# Script and styles come from the site itself.
docs = SpectacularSwaggerSplitView.as_view(url_name="schema", permission_classes=[AllowAny], authentication_classes=[])

VERB = "|".join(relations_views.VERBS)

pages = [
    path("", timeline_views.home, name="home"),
    path("new", timeline_views.news, name="news"),
    path("position", timeline_views.keep_position, name="position"),
    path("discover", discover_views.discover, name="discover"),
    path("signup", accounts_views.sign_up, name="signup"),
    path("first-admin/<str:token>", accounts_views.make_first_admin, name="first-admin"),
    path("login", accounts_views.LoginView.as_view(), name="login"),
    path("logout", accounts_views.LogoutView.as_view(), name="logout"),
    path("settings", accounts_views.settings, name="settings"),
    path("settings/preferences", accounts_views.preferences, name="settings-preferences"),
    path("settings/password", accounts_views.password, name="settings-password"),
    path("settings/log-out-everywhere", accounts_views.log_out_everywhere, name="log-out-everywhere"),
    path("settings/data", accounts_views.data, name="settings-data"),
    path("settings/delete", accounts_views.delete, name="settings-delete"),
    path("language", accounts_views.language, name="language"),
    path("search", items_views.search, name="search"),
    path("tags/<str:name>", items_views.tag, name="tag"),
    path("notifications", notifications_views.everything, name="notifications"),
    path("notifications/mentions", notifications_views.conversations, name="mentions"),
    path("notifications/unread", notifications_views.badge, name="unread"),
    path("items/new", items_views.publish, name="publish"),
    path("items/<int:item_id>", items_views.show_item, name="item"),
    path("items/<int:item_id>/edit", items_views.edit, name="edit"),
    path("items/<int:item_id>/delete", items_views.delete, name="delete"),
    path("items/<int:item_id>/report", moderation_views.report, name="report"),
    path("items/<int:item_id>/not-interested", history_views.not_interested, name="not-interested"),
    path("items/<int:item_id>/interested", history_views.interested, name="interested"),
    path("live", live_views.live, name="live"),
    path("live/news", live_views.news, name="live-news"),
    path("live/own", live_views.own, name="live-own"),
    path("live/new", live_views.plan, name="live-plan"),
    path("live/<int:session_id>", live_views.show_session, name="live-session"),
    path("live/<int:session_id>/edit", live_views.edit, name="live-edit"),
    path("live/<int:session_id>/remind", live_views.remind, name="live-remind"),
    path("live/<int:session_id>/forget", live_views.forget_reminder, name="live-forget"),
    path("live/<int:session_id>/report", moderation_views.report_session, name="report-session"),
    path("live/<int:session_id>/<slug:verb>", live_views.change, name="live-change"),
    path("history", history_views.history, name="history"),
    path("history/not-interested", history_views.unwanted, name="unwanted"),
    re_path(f"^history/(?P<verb>{'|'.join(history_views.VERBS)})$", history_views.change, name="history-change"),
    path("items/<int:item_id>/like", items_views.like, name="like"),
    path("items/<int:item_id>/unlike", items_views.unlike, name="unlike"),
    path("items/<int:item_id>/repost", items_views.repost, name="repost"),
    path("items/<int:item_id>/undo-repost", items_views.undo_repost, name="undo_repost"),
    path("@<str:username>", items_views.profile, name="profile"),
    path("@<str:username>/replies", items_views.profile_replies, name="profile_replies"),
    path("@<str:username>/followers", relations_views.followers, name="followers"),
    path("@<str:username>/following", relations_views.following, name="following"),
    re_path(f"^@(?P<username>[^/]+)/(?P<verb>{VERB})$", relations_views.relate, name="relate"),
]

urlpatterns = [
    path("api/v1/", include(api)),
    *pages,
    path(settings.ADMIN_PATH, admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=f"/{settings.STATIC_URL.strip('/')}/feedsite/icon.svg")),
    path("api/schema", openapi.schema, name="schema"),
    path("api/docs", docs, name="docs"),
    re_path("^api/", NotFoundView.as_view()),
]
