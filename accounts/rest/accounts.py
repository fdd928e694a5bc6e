from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.http import FileResponse, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request

from accounts import actions, addresses, faces
from accounts.callers import authenticated_user
from accounts.export import ZIP_TYPE, archive_response
from accounts.joining import actions as joining
from accounts.joining_models import CODE_LENGTH, REASON_LENGTH
from accounts.models import QuotableBy, User
from accounts.profile_fields import LABEL_LENGTH, MOST, TEXT_LENGTH
from accounts.signing_in import guard, second_factors, step_up
from accounts.signing_in.tokens import token_id_of
from media.api import Face, validated_form
from media.models import Use
from web import rates, uploads
from web.rest import (
    FILES_TYPE,
    ApiView,
    FeedResponse,
    FilesParser,
    FlagField,
    Problem,
    StrictSerializer,
    TextField,
    body,
    count_call,
)
from web.times import Time


class ProfileField(msgspec.Struct):
    """A label and a text, chosen by the user."""

    name: str
    value: str


class Account(msgspec.Struct):
    """A user as they see themselves."""

    id: str
    username: str
    display_name: str
    bio: str
    fields: list[ProfileField]
    is_big_v: bool
    is_locked: bool
    """Whether the user decides on each follower."""
    created_at: Time
    avatar_url: str
    banner_url: str
    is_indexable: bool
    quotable_by: str
    """Who may quote new posts: everyone, followers, nobody."""
    takes_requests: bool
    """Whether strangers may send private mentions."""

    @classmethod
    def of(cls, user: User) -> "Account":
        """The user's account."""
        return cls(
            str(user.pk),
            user.username,
            user.display_name,
            user.bio,
            fields_of(user),
            user.is_big_v,
            user.is_locked,
            user.date_joined,
            user.avatar_url,
            user.banner_url,
            user.is_indexable,
            user.quotable_by,
            user.takes_requests,
        )


def fields_of(user: User) -> list[ProfileField]:
    """The user's profile fields."""
    return [ProfileField(one["name"], one["value"]) for one in user.profile_fields]


class Waiting(msgspec.Struct):
    """A waiting application."""

    state: str


class Refusal(msgspec.Struct):
    """An error: text for people, code for programs."""

    detail: str
    code: str


class Credentials(StrictSerializer):
    """Username and password."""

    username = TextField(max_length=150, trim_whitespace=False)
    password = TextField(max_length=4096, trim_whitespace=False)


class NewAccount(Credentials):
    """Sign-up. `invite` if invitations are needed, `reason` if an admin decides."""

    email = TextField(max_length=254, required=False, allow_blank=True)
    invite = TextField(max_length=CODE_LENGTH, required=False, allow_blank=True)
    reason = TextField(max_length=REASON_LENGTH, required=False, allow_blank=True)


class FieldEdit(StrictSerializer):
    """A profile field."""

    name = TextField(max_length=LABEL_LENGTH)
    value = TextField(max_length=TEXT_LENGTH)


class ProfileEdit(StrictSerializer):
    """Changes to profile, preferences and e-mail."""

    display_name = TextField(max_length=50, allow_blank=True, required=False)
    bio = TextField(max_length=500, allow_blank=True, required=False)
    fields = serializers.ListField(  # type: ignore[assignment]  # the name that apps know, too, and DRF's own beside it
        child=FieldEdit(), required=False, max_length=MOST
    )
    is_indexable = FlagField(required=False)
    quotable_by = serializers.ChoiceField(QuotableBy.choices, required=False)
    takes_requests = FlagField(required=False)
    email = TextField(max_length=254, required=False)
    current_password = TextField(max_length=4096, trim_whitespace=False, required=False)
    code = TextField(max_length=second_factors.CODE_LENGTH, required=False, allow_blank=True)
    is_locked = FlagField(required=False)


class PasswordChange(StrictSerializer):
    """Old and new password."""

    current_password = TextField(max_length=4096, trim_whitespace=False)
    new_password = TextField(max_length=4096, trim_whitespace=False)
    code = TextField(max_length=second_factors.CODE_LENGTH, required=False, allow_blank=True)


class Proof(StrictSerializer):
    """Proof for exporting or deleting the account."""

    password = TextField(max_length=4096, trim_whitespace=False)
    code = TextField(max_length=second_factors.CODE_LENGTH, required=False, allow_blank=True)


class UsersView(ApiView):
    """New accounts."""

    authentication_classes: Sequence[Any] = []
    permission_classes: Sequence[Any] = []

    @extend_schema(
        operation_id="sign_up",
        request=NewAccount,
        responses={
            201: Account,
            202: OpenApiResponse(Waiting, "An admin decides on the account."),
            403: OpenApiResponse(Refusal, "The site takes no new accounts: the code is `sign_up_closed`."),
        },
        auth=[],
    )
    def post(self, request: Request) -> HttpResponse:
        """Sign up, as the site's mode allows (`read_site`). Names have letters, digits, hyphens and underscores, and
        are unique regardless of case and look-alikes.
        """
        fields = body(request, NewAccount)
        invite = fields.pop("invite", "")
        wait = joining.count_attempt(rates.address(request._request), code=invite)
        if wait is not None:
            raise exceptions.Throttled(wait)
        user = joining.join(joining.SignUpInput(**fields), invite=invite)
        if user is None:
            return FeedResponse(Waiting("waiting"), status=HTTPStatus.ACCEPTED)
        return FeedResponse(Account.of(user), status=HTTPStatus.CREATED)


class MeView(ApiView):
    scopes = "accounts"

    @extend_schema(operation_id="read_me", responses={200: Account})
    def get(self, request: Request) -> HttpResponse:
        """Your account."""
        return FeedResponse(Account.of(authenticated_user(request)))

    @extend_schema(operation_id="edit_me", request=ProfileEdit, responses={200: Account})
    def patch(self, request: Request) -> HttpResponse:
        """Change profile and preferences. Fields not sent stay. A new `email` needs `current_password`, perhaps a
        `code`, and counts once its letter is confirmed.
        """
        fields, user = body(request, ProfileEdit), authenticated_user(request)
        address, password, code = (fields.pop(name, "") for name in ("email", "current_password", "code"))
        preferences = {name: fields.pop(name, None) for name in ("is_indexable", "quotable_by", "takes_requests")}
        if address:
            count_call("password", str(user.pk))
            step_up.check_password(request, user, password=password, field="current_password", code=code)
        with transaction.atomic():
            if address:
                addresses.add(user=user, address=address)
            actions.edit_preferences(user=user, **preferences)
            if "fields" in fields:
                fields["fields"] = [(one["name"], one["value"]) for one in fields["fields"]]
            actions.edit_profile(user=user, **fields)
        return FeedResponse(Account.of(user))


class FaceView(ApiView):
    """The caller's avatar or banner."""

    rates = {"PUT": "upload"}
    takes_files = {"PUT": uploads.one_medium_bytes}
    parser_classes = [FilesParser]
    use: Use

    def _put(self, request: Request) -> HttpResponse:
        user, fields = authenticated_user(request), validated_form(request, Face)
        with fields["file"].open("rb") as file:
            faces.set_face(user=user, use=self.use, file=file)
        return FeedResponse(Account.of(user))

    def _delete(self, request: Request) -> HttpResponse:
        faces.remove_face(user=authenticated_user(request), use=self.use)
        return HttpResponse(status=204)


class AvatarView(FaceView):
    scopes = "accounts"
    use = Use.AVATAR

    @extend_schema(operation_id="set_avatar", request={FILES_TYPE: Face}, responses={200: Account})
    def put(self, request: Request) -> HttpResponse:
        """Set the avatar, cut to a square from the middle."""
        return self._put(request)

    @extend_schema(operation_id="remove_avatar", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Remove the avatar."""
        return self._delete(request)


class BannerView(FaceView):
    scopes = "accounts"
    use = Use.BANNER

    @extend_schema(operation_id="set_banner", request={FILES_TYPE: Face}, responses={200: Account})
    def put(self, request: Request) -> HttpResponse:
        """Set the banner."""
        return self._put(request)

    @extend_schema(operation_id="remove_banner", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """Remove the banner."""
        return self._delete(request)


class PasswordView(ApiView):
    """The caller's password."""

    rates = {"POST": "password"}

    @extend_schema(operation_id="change_password", request=PasswordChange, responses={204: None})
    def post(self, request: Request) -> HttpResponse:
        """Set a new password. Your other sessions and tokens end. With a second factor it needs a `code`."""
        fields, user = body(request, PasswordChange), authenticated_user(request)
        current, code = fields["current_password"], fields.get("code", "")
        step_up.check_password(request, user, password=current, field="current_password", code=code)
        user = actions.change_password(
            user=user,
            current=current,
            new=fields["new_password"],
            keep_token=token_id_of(request),
        )
        return _keep_signed_in(request, user)


class SessionsView(ApiView):
    """The caller's sessions and tokens."""

    @extend_schema(operation_id="log_out_everywhere", responses={204: None})
    def delete(self, request: Request) -> HttpResponse:
        """End your other sessions and tokens."""
        user = actions.log_out_everywhere(user=authenticated_user(request), keep_token=token_id_of(request))
        return _keep_signed_in(request, user)


# A POST: proxies may drop the body of a DELETE, and an address must not hold a password.
class DeleteMeView(ApiView):
    """The deletion of the caller's account."""

    rates = {"POST": "password"}

    @extend_schema(
        operation_id="delete_me",
        request=Proof,
        responses={204: None, 409: OpenApiResponse(Problem, "The caller is the last administrator of the site.")},
    )
    def post(self, request: Request) -> HttpResponse:
        """Delete your account and items for good. With a second factor it needs a `code`."""
        fields, user = body(request, Proof), authenticated_user(request)
        password, code = fields["password"], fields.get("code", "")
        step_up.check_password(request, user, password=password, field="password", code=code)
        actions.delete_account(user=user, by_owner=True)
        return HttpResponse(status=204)


class ExportView(ApiView):
    """The caller's data."""

    rates = {"GET": "export", "POST": "password"}

    @extend_schema(operation_id="export_me", responses={(200, ZIP_TYPE): OpenApiTypes.BINARY})
    def get(self, request: Request) -> FileResponse:
        """All data that the site keeps about you, as a zip. With a second factor, a token takes the POST."""
        user = authenticated_user(request)
        step_up.check_proof(request, user)
        return archive_response(user)

    def head(self, request: Request) -> HttpResponse:
        """Headers only. The archive is not made."""
        step_up.check_proof(request, authenticated_user(request))
        return HttpResponse(content_type=ZIP_TYPE)

    @extend_schema(
        operation_id="export_me_by_password", request=Proof, responses={(200, ZIP_TYPE): OpenApiTypes.BINARY}
    )
    def post(self, request: Request) -> FileResponse:
        """The same, for your password, and a `code` with a second factor."""
        fields, user = body(request, Proof), authenticated_user(request)
        password, code = fields["password"], fields.get("code", "")
        step_up.check_password(request, user, password=password, field="password", code=code)
        count_call("export", str(user.pk))
        return archive_response(user)


def _keep_signed_in(request: Request, user: User) -> HttpResponse:
    """Answer 204, and keep the calling session and browser signed in."""
    response = HttpResponse(status=204)
    if not request.auth:
        update_session_auth_hash(request._request, user)
        guard.set_device_cookie(response, user)
    return response
