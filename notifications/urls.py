from django.urls import include, path, re_path

from notifications import api, views
from notifications.push import api as push_api
from notifications.push import views as push_views

api_patterns = [
    path("me/notifications", api.NotificationsView.as_view()),
    path("me/notifications/unread", api.UnreadView.as_view()),
    path("me/notifications/read", api.ReadView.as_view()),
    path("me/push", push_api.PushView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("notifications", views.all_notifications, name="notifications"),
    path("notifications/mentions", views.conversations, name="mentions"),
    re_path(rf"^notifications/(?P<group>{'|'.join(views.FILTERS)})\Z", views.of_kind, name="notifications-of"),
    path("notifications/unread", views.badge, name="unread"),
    path("settings/notifications", views.choose_kinds, name="settings-notifications"),
    path("settings/notifications/push", push_views.push, name="settings-push"),
    path("settings/notifications/push/<int:subscription_id>", push_views.change_device, name="settings-push-change"),
    path("settings/notifications/push/<int:subscription_id>/remove", push_views.remove, name="settings-push-remove"),
    path("settings/notifications/push/<int:subscription_id>/trial", push_views.send_trial, name="settings-push-trial"),
    path("notifications/news", views.news, name="notification-news"),
]
