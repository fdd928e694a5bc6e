"""The rules of the site for OAuth, as oauthlib asks for them: secrets, scopes and tokens of apps."""

import hashlib
from typing import Any

from django.conf import settings
from django.utils.crypto import constant_time_compare
from oauth2_provider.models import get_access_token_model
from oauth2_provider.oauth2_validators import OAuth2Validator

from accounts.actions import revoke_token
from accounts.signing_in.models import OWN_APP
from accounts.signing_in.tokens import digest_of
from clientapi import scopes

AccessToken = get_access_token_model()


def secret_digest(secret: str) -> str:
    """The hash of an app's secret. A secret is long and drawn, so a fast hash keeps it."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


class Validator(OAuth2Validator):  # type: ignore[misc]  # without types
    """django-oauth-toolkit's, without refresh tokens: a token lives as long as it is used."""

    def _check_secret(self, provided_secret: str, stored_secret: str) -> bool:
        return constant_time_compare(secret_digest(provided_secret), stored_secret)

    def _load_application(self, client_id: str, request: Any) -> Any:
        """The app of this id. None for one that PostgreSQL cannot be asked for."""
        return None if client_id and "\0" in client_id else super()._load_application(client_id, request)

    def validate_scopes(self, client_id: str, scopes: Any, client: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether the app may ask for these scopes."""
        return _are_within(scopes, client)

    def validate_user(self, *args: Any, **kwargs: Any) -> bool:
        """False: no app is given a password."""
        return False

    def _save_bearer_token(self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any) -> None:
        """Keep the token, by its hash. The oldest of the user's beyond `TOKEN_CAP` gives way; of tokens in no user's
        name the oldest of the app's.
        """
        token.pop("refresh_token", None)
        super()._save_bearer_token(token, request, *args, **kwargs)
        owner = {"user": request.user} if request.user is not None else {"user": None, "application": request.client}
        kept = AccessToken.objects.filter(**owner).exclude(application=OWN_APP).order_by("-id")
        for token_id in kept[settings.TOKEN_CAP : 2 * settings.TOKEN_CAP].values_list("pk", flat=True):
            revoke_token(token_id=token_id)

    def revoke_token(self, token: str, token_type_hint: str, request: Any, *args: Any, **kwargs: Any) -> None:
        """Make a token of the app worthless, and end the streams that it holds open."""
        held = AccessToken.objects.filter(token_checksum=digest_of(token), application=request.client)
        for token_id in held.values_list("pk", flat=True):
            revoke_token(token_id=token_id)


def _are_within(asked: Any, client: Any) -> bool:
    return scopes.are_within(asked, scopes.parsed(client.scopes))
