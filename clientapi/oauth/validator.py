"""The site's OAuth rules for oauthlib."""

import hashlib
from typing import Any

from django.conf import settings
from django.utils.crypto import constant_time_compare
from oauth2_provider.models import get_access_token_model, get_grant_model
from oauth2_provider.oauth2_validators import OAuth2Validator

from accounts.actions import revoke_token
from accounts.models import TokenOrigin, User
from accounts.signing_in.tokens import digest_of
from accounts.signing_in_models import OWN_APP, ClientApp
from clientapi.oauth import scopes
from clientapi.oauth.bearer import OF_APP_LIFE

AccessToken = get_access_token_model()
Grant = get_grant_model()
OF_APP = 4
"""Maximum tokens without a user per app."""


def secret_digest(secret: str) -> str:
    """The hash of an app's secret. A fast one is enough: secrets are long and random."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


class Validator(OAuth2Validator):  # type: ignore[misc]  # without types
    """The site's rules for tokens. There are no refresh tokens: a token lives as long as it is used."""

    def _check_secret(self, provided_secret: str, stored_secret: str) -> bool:
        return constant_time_compare(secret_digest(provided_secret), stored_secret)

    def _load_application(self, client_id: str, request: Any) -> Any:
        """Load the app. None for an id that PostgreSQL cannot store."""
        return None if client_id and "\0" in client_id else super()._load_application(client_id, request)

    def validate_scopes(self, client_id: str, scopes: Any, client: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether the app may ask for these scopes."""
        return _are_within(scopes, client)

    def validate_user(self, *args: Any, **kwargs: Any) -> bool:
        """False: the site accepts no passwords from apps."""
        return False

    def validate_code(self, client_id: str, code: str, client: Any, request: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether the code is valid. One that comes again ends the token that it gave (RFC 6749, 4.1.2).

        Locks user, app and code in the caller's transaction: what ends codes locks the user or the app first too, and
        of two calls at once the second finds the code used.
        """
        codes = Grant.objects.filter(code=code, application=client)
        given = AccessToken.objects.filter(origin__code_digest=digest_of(code), application=client)
        owners = [user_id for rows in (codes, given) for user_id in rows.values_list("user_id", flat=True)]
        user = User.objects.active().locked().filter(pk__in=owners).first()
        list(ClientApp.objects.select_for_update(no_key=True).filter(pk=client.pk).values_list("pk"))
        if user is not None and list(codes.select_for_update().values_list("pk")):
            return bool(super().validate_code(client_id, code, client, request, *args, **kwargs))
        for token_id in given.values_list("pk", flat=True):
            revoke_token(token_id=token_id)
        return False

    def get_default_redirect_uri(self, *args: Any, **kwargs: Any) -> None:
        """None: an app names its address when it asks for a code, and again for the token (RFC 6749, 4.1.3)."""

    def _create_access_token(self, expires: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Store the token's hash, and the code's."""
        row = super()._create_access_token(expires, request, *args, **kwargs)
        if request.grant_type == "authorization_code":
            TokenOrigin.objects.create(token=row, code_digest=digest_of(request.code))
        return row

    def _save_bearer_token(self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any) -> None:
        """Store the token's hash, and revoke the oldest tokens beyond the limit.

        The limit is `TOKEN_CAP` for a user, and `OF_APP` for an app's tokens without a user.
        """
        token.pop("refresh_token", None)
        is_of_app = request.grant_type == "client_credentials"
        if is_of_app:  # so that concurrent calls keep the limit
            list(ClientApp.objects.select_for_update(no_key=True).filter(pk=request.client.pk).values_list("pk"))
            token["expires_in"] = int(OF_APP_LIFE.total_seconds())
        super()._save_bearer_token(token, request, *args, **kwargs)
        owner = {"user": None, "application": request.client} if is_of_app else {"user": request.user}
        kept = AccessToken.objects.filter(**owner).exclude(application=OWN_APP).order_by("-id")
        cap = min(OF_APP, settings.TOKEN_CAP) if is_of_app else settings.TOKEN_CAP
        for token_id in kept[cap : 2 * settings.TOKEN_CAP].values_list("pk", flat=True):
            revoke_token(token_id=token_id)

    def revoke_token(self, token: str, token_type_hint: str, request: Any, *args: Any, **kwargs: Any) -> None:
        """Revoke the app's token and end its streams."""
        held = AccessToken.objects.filter(token_checksum=digest_of(token), application=request.client)
        for token_id in held.values_list("pk", flat=True):
            revoke_token(token_id=token_id)


def _are_within(asked: Any, client: Any) -> bool:
    return scopes.are_within(asked, scopes.parsed(client.scopes))
