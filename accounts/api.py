"""Sign-up, tokens and one's own account, over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import FileResponse, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

from accounts import actions, faces, guard
from accounts.avatars import avatar_url
from accounts.export import ZIP_TYPE, archive_response
from accounts.models import User
from accounts.tokens import TokenAuthentication
from media.api import Face, form, taken
from media.models import Use
from web import rates
from web.rest import (
    FILES_TYPE,
    ApiView,
    ConflictError,
    FeedResponse,
    FilesParser,
    FlagField,
    Problem,
    StrictSerializer,
    TextField,
    Time,
    body,
    invalid,
    spend,
)


class Account(msgspec.Struct):
    """A user as they see themself."""

    id: str
    username: str
    display_name: str
    bio: str
    is_big_v: bool
    is_locked: bool
    """Whether the user decides on each follower."""
    created_at: Time
    avatar_url: str
    banner_url: str

    @classmethod
    def of(cls, user: User) -> "Account":
        """The account of this user."""
        return cls(
            str(user.pk),
            user.username,
            user.display_name,
            user.bio,
            user.is_big_v,
            user.is_locked,
            user.date_joined,
            user.avatar_url,
            user.banner_url,
        )


class UserCard(msgspec.Struct):
    """A user as far as lists show them."""

    id: str
    username: str
    display_name: str
    is_big_v: bool
    avatar_url: str = ""

    @classmethod
    def of(cls, user: User) -> Self:
        """The card of this user."""
        return cls(str(user.pk), user.username, user.display_name, user.is_big_v, user.avatar_url)

    @classmethod
    def from_row(
        cls, user_id: int | str, username: str, display_name: str, is_big_v: bool, avatar: Mapping[str, Any] | None
    ) -> Self:
        """The card of a user of whom only these columns were read."""
        url = avatar_url(avatar, username, display_name or username)
        return cls(str(user_id), username, display_name, is_big_v, url)

    @property
    def name(self) -> str:
        """The display name, or the username where there is none."""
        return self.display_name or self.username


class Token(msgspec.Struct):
    """The token, as a client sends it after `Authorization: Token `. It is shown once."""

    token: str


def signed_in(request: Request) -> User:
    """The caller, in views that need one."""
    if not isinstance(request.user, User):
        raise exceptions.NotAuthenticated
    return request.user


def reader_of(request: Request) -> User | AnonymousUser:
    """The caller, in views that all may read."""
    return request.user if isinstance(request.user, User) else AnonymousUser()


class Credentials(StrictSerializer):
    """Name and password."""

    username = TextField(max_length=150, trim_whitespace=False)
    password = TextField(max_length=4096, trim_whitespace=False)


class ProfileEdit(StrictSerializer):
    """How a user presents themself."""

    display_name = TextField(max_length=50, allow_blank=True, required=False)
    bio = TextField(max_length=500, allow_blank=True, required=False)
    is_locked = FlagField(required=False)


class PasswordChange(StrictSerializer):
    """The password that holds and the one that is to."""

    current_password = TextField(max_length=4096, trim_whitespace=False)
    new_password = TextField(max_length=4096, trim_whitespace=False)


class Farewell(StrictSerializer):
    """The password, asked again."""

    password = TextField(max_length=4096, trim_whitespace=False)


class UsersView(ApiView):
    """New accounts, over HTTP."""

    authentication_classes: Sequence[Any] = []
    permission_classes: Sequence[Any] = []

    @extend_schema(operation_id="sign_up", request=Credentials, responses={201: Account}, auth=[])
    def post(self, request: Request) -> HttpResponse:
        """Sign up. Names are letters, digits, hyphens and underscores, unique without regard to case."""
        fields = body(request, Credentials)
        spend("signup", rates.address(request._request))
        try:
            user = actions.sign_up(**fields)
        except DjangoValidationError as error:
            raise invalid(error) from error
        return FeedResponse(Account.of(user), status=201)


class TokenView(ApiView):
    """POST asks for a token, whatever token the caller still sends; DELETE is for who sends a good one."""

    def _is_anonymous(self) -> bool:
        return self.request is not None and self.request.method == "POST"

    def get_authenticators(self) -> list[Any]:
        """None for a call that issues a token; else the token's."""
        return [] if self._is_anonymous() else [TokenAuthentication()]

    def get_permissions(self) -> list[Any]:
        """None for a call that issues a token; else to be signed in."""
        return [] if self._is_anonymous() else [IsAuthenticated()]

    @extend_schema(operation_id="log_in", request=Credentials, responses={200: Token}, auth=[])
    def post(self, request: Request) -> HttpResponse:
        """A new token for name and password."""
        fields = body(request, Credentials)
        wait = guard.attempt(request._request, fields["username"])
        if wait is not None:
            raise exceptions.Throttled(wait)
        user = authenticate(request._request, **fields)
        if not isinstance(user, User):
            raise serializers.ValidationError({"non_field_errors": ["Wrong username or password."]})
        token = actions.issue_token(user=user)
        rates.mark(rates.token_credential(token), user.pk)
        response = FeedResponse(Token(token))
        guard.remember(response, user)
        return response

    @extend_schema(operation_id="log_out", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Revoke the token that sends this."""
        actions.revoke_token(digest=str(request.auth))
        return HttpResponse(status=204)


class MeView(ApiView):
    """The caller's account, over HTTP."""

    @extend_schema(operation_id="read_me", responses={200: Account})
    def get(self, request: Request) -> HttpResponse:
        """The caller's own account."""
        return FeedResponse(Account.of(signed_in(request)))

    @extend_schema(operation_id="edit_me", request=ProfileEdit, responses={200: Account})
    def patch(self, request: Request) -> HttpResponse:
        """Change display name, bio, or whether the caller decides on each follower; what is not sent stays."""
        fields = body(request, ProfileEdit)
        try:
            user = actions.edit_profile(user=signed_in(request), **fields)
        except DjangoValidationError as error:
            raise invalid(error) from error
        return FeedResponse(Account.of(user))


class FaceView(ApiView):
    """The caller's avatar or banner, over HTTP."""

    rates = {"PUT": "upload"}
    takes_files = frozenset({"PUT"})
    parser_classes = [FilesParser]
    use: Use

    def _put(self, request: Request) -> HttpResponse:
        user, fields = signed_in(request), form(request, Face)
        with fields["file"].open("rb") as file:
            taken("file", lambda: faces.set_face(user=user, use=self.use, file=file))
        return FeedResponse(Account.of(user))

    def _delete(self, request: Request) -> HttpResponse:
        faces.remove_face(user=signed_in(request), use=self.use)
        return HttpResponse(status=204)


class AvatarView(FaceView):
    """The caller's avatar, over HTTP."""

    use = Use.AVATAR

    @extend_schema(operation_id="set_avatar", request={FILES_TYPE: Face}, responses={200: Account})
    def put(self, request: Request) -> HttpResponse:
        """Set the avatar: a picture, which is cut to a square from its middle."""
        return self._put(request)

    @extend_schema(operation_id="remove_avatar", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Remove the avatar; again changes nothing."""
        return self._delete(request)


class BannerView(FaceView):
    """The caller's banner, over HTTP."""

    use = Use.BANNER

    @extend_schema(operation_id="set_banner", request={FILES_TYPE: Face}, responses={200: Account})
    def put(self, request: Request) -> HttpResponse:
        """Set the banner: a picture."""
        return self._put(request)

    @extend_schema(operation_id="remove_banner", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Remove the banner; again changes nothing."""
        return self._delete(request)


class PasswordView(ApiView):
    """The caller's password, over HTTP."""

    rates = {"POST": "password"}

    @extend_schema(operation_id="change_password", request=PasswordChange, responses={204: None})
    def post(self, request: Request) -> HttpResponse:
        """Set another password. Every other session and token of the caller ends."""
        fields = body(request, PasswordChange)
        try:
            user = actions.change_password(
                user=signed_in(request),
                current=fields["current_password"],
                new=fields["new_password"],
                keep_token=_token(request),
            )
        except DjangoValidationError as error:
            raise invalid(error) from error
        return _stayed(request, user)


class SessionsView(ApiView):
    """The caller's sessions and tokens, over HTTP."""

    @extend_schema(operation_id="log_out_everywhere", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """End every other session and token of the caller."""
        user = actions.log_out_everywhere(user=signed_in(request), keep_token=_token(request))
        return _stayed(request, user)


# See docs/decisions.md: Deleting an account is a POST with the password.
class DeleteMeView(ApiView):
    """The deletion of the caller's account, over HTTP."""

    rates = {"POST": "password"}

    @extend_schema(
        operation_id="delete_me",
        request=Farewell,
        responses={204: None, 409: OpenApiResponse(Problem, "The caller is the last who administrates the site.")},
    )
    def post(self, request: Request) -> HttpResponse:
        """Delete the caller's account for good: it and its items are hidden from all from then on."""
        fields, user = body(request, Farewell), signed_in(request)
        try:
            actions.check_own_password(user=user, password=fields["password"], field="password")
            actions.delete_account(user=user)
        except DjangoValidationError as error:
            raise invalid(error) from error
        except actions.LastSuperuserError as error:
            raise ConflictError("You are the last who administrates the site.") from error
        return HttpResponse(status=204)


class ExportView(ApiView):
    """The caller's own data, over HTTP."""

    rates = {"GET": "export"}

    @extend_schema(operation_id="export_me", responses={(200, ZIP_TYPE): OpenApiTypes.BINARY})
    def get(self, request: Request) -> FileResponse:
        """All that the site keeps of the caller, as a zip archive; its README.txt says what is what."""
        return archive_response(signed_in(request))

    def head(self, request: Request) -> HttpResponse:
        """The headers of the archive, which is not made."""
        return HttpResponse(content_type=ZIP_TYPE)


def _stayed(request: Request, user: User) -> HttpResponse:
    """Answer 204 to a caller whose other sessions end. A session that asked stays signed in, as does its browser."""
    response = HttpResponse(status=204)
    if not request.auth:
        update_session_auth_hash(request._request, user)
        guard.remember(response, user)
    return response


def _token(request: Request) -> str:
    """The digest of the token that sends this, if one does."""
    return str(request.auth or "")
