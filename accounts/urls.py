"""The addresses of accounts."""

from django.urls import include, path

from accounts import api, views
from accounts.avatars import DRAWING

api_patterns = [
    path("users", api.UsersView.as_view()),
    path("users/me", api.MeView.as_view()),
    path("users/me/avatar", api.AvatarView.as_view()),
    path("users/me/banner", api.BannerView.as_view()),
    path("users/me/password", api.PasswordView.as_view()),
    path("users/me/sessions", api.SessionsView.as_view()),
    path("users/me/delete", api.DeleteMeView.as_view()),
    path("users/me/export", api.ExportView.as_view()),
    path("auth/token", api.TokenView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("signup", views.sign_up, name="signup"),
    path("signup/waiting", views.signup_waiting, name="signup-waiting"),
    path("invite/<str:code>", views.sign_up, name="invite"),
    path("first-admin/<str:token>", views.make_first_admin, name="first-admin"),
    path("login", views.LoginView.as_view(), name="login"),
    path("logout", views.LogoutView.as_view(), name="logout"),
    path("settings", views.settings, name="settings"),
    path("settings/preferences", views.preferences, name="settings-preferences"),
    path("settings/password", views.password, name="settings-password"),
    path("settings/log-out-everywhere", views.log_out_everywhere, name="log-out-everywhere"),
    path("settings/invitations", views.invite, name="settings-invitations"),
    path("settings/invitations/<int:invitation_id>/revoke", views.revoke_invitation, name="revoke-invitation"),
    path("settings/data", views.data, name="settings-data"),
    path("settings/delete", views.delete, name="settings-delete"),
    path("language", views.language, name="language"),
    path(f"avatars/v{DRAWING}/banner-<int:number>.svg", views.drawn_banner, name="drawn-banner"),
    path(f"avatars/v{DRAWING}/<int:number>-<str:code>.svg", views.drawn_avatar, name="drawn-avatar"),
]
