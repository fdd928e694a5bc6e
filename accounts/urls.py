from django.urls import include, path

from accounts import api, views
from accounts.avatars import DRAWING
from accounts.joining import views as joining_views
from accounts.signing_in import security_api, security_views
from accounts.signing_in import views as sign_in_views

api_patterns = [
    path("users", api.UsersView.as_view()),
    path("users/me", api.MeView.as_view()),
    path("users/me/avatar", api.AvatarView.as_view()),
    path("users/me/banner", api.BannerView.as_view()),
    path("users/me/password", api.PasswordView.as_view()),
    path("users/me/sessions", api.SessionsView.as_view()),
    path("users/me/delete", api.DeleteMeView.as_view()),
    path("users/me/export", api.ExportView.as_view()),
    path("auth/token", security_api.TokenView.as_view()),
    path("auth/password-reset", security_api.PasswordResetView.as_view()),
]

urlpatterns = [
    path("api/v1/", include(api_patterns)),
    path("signup", joining_views.sign_up, name="signup"),
    path("signup/waiting", joining_views.signup_waiting, name="signup-waiting"),
    path("invite/<str:code>", joining_views.sign_up, name="invite"),
    path("first-admin/<str:token>", joining_views.make_first_admin, name="first-admin"),
    path("login", sign_in_views.log_in, name="login"),
    path("login/code", sign_in_views.log_in_code, name="login-code"),
    path("login/passkey", sign_in_views.log_in_passkey, name="login-passkey"),
    path("login/passkey/options", sign_in_views.passkey_options, name="login-passkey-options"),
    path("password-reset", sign_in_views.ask_reset, name="password-reset"),
    path("password-reset/asked", sign_in_views.reset_asked, name="password-reset-asked"),
    path("password-reset/<str:number>/<str:token>", sign_in_views.reset, name="password-reset-link"),
    path("verify-email/<str:key>", sign_in_views.verify_email, name="verify-email"),
    path("logout", views.LogoutView.as_view(), name="logout"),
    path("settings", views.settings, name="settings"),
    path("settings/profile", views.settings, name="settings-profile"),
    path("settings/account", security_views.account, name="settings-account"),
    path("settings/preferences", views.preferences, name="settings-preferences"),
    path("settings/password", views.password, name="settings-password"),
    path("settings/confirm", security_views.confirm, name="confirm-identity"),
    path("settings/confirm/passkey", security_views.confirm_passkey, name="confirm-passkey"),
    path("settings/confirm/passkey/options", security_views.confirm_options, name="confirm-passkey-options"),
    path("settings/email", security_views.email, name="settings-email"),
    path("settings/email/code", security_views.email_code, name="settings-email-code"),
    path("settings/email/again", security_views.email_again, name="settings-email-again"),
    path("settings/email/remove", security_views.email_remove, name="settings-email-remove"),
    path("settings/devices", security_views.devices, name="settings-devices"),
    path("settings/devices/end", security_views.end_device, name="settings-devices-end"),
    path("settings/factors", security_views.factors, name="settings-factors"),
    path("settings/factors/app", security_views.factor_app, name="settings-factor-app"),
    path("settings/factors/passkey", security_views.factor_passkey, name="settings-factor-passkey"),
    path(
        "settings/factors/passkey/options",
        security_views.factor_passkey_options,
        name="settings-factor-passkey-options",
    ),
    path("settings/factors/remove", security_views.factor_remove, name="settings-factor-remove"),
    path("settings/factors/recovery-codes", security_views.recovery_codes, name="settings-recovery-codes"),
    path("settings/log-out-everywhere", views.log_out_everywhere, name="log-out-everywhere"),
    path("settings/invitations", joining_views.invite, name="settings-invitations"),
    path("settings/invitations/<int:invitation_id>/revoke", joining_views.revoke_invitation, name="revoke-invitation"),
    path("settings/data", views.data, name="settings-data"),
    path("settings/delete", views.delete, name="settings-delete"),
    path("language", views.language, name="language"),
    path(f"avatars/v{DRAWING}/banner-<int:number>.svg", views.drawn_banner, name="drawn-banner"),
    path(f"avatars/v{DRAWING}/<int:number>-<str:code>.svg", views.drawn_avatar, name="drawn-avatar"),
]
