import io
import json
import re
import zipfile
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
import time_machine
from django.contrib.messages import get_messages
from django.core.cache import cache
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import addresses
from accounts.about import site
from accounts.about.models import SignUp
from accounts.actions import delete_account
from accounts.export import write_archive
from accounts.joining import actions as joining
from accounts.joining import applications, invitations
from accounts.joining_models import Application, Invitation, Invited
from accounts.mail.letters import compose
from accounts.mail.models import Letter
from accounts.models import User
from tests.support.api import API
from tests.support.at_once import at_once
from tests.support.deletions import settle
from tests.support.factories import PASSWORD, UserFactory, say
from tests.support.pages import logged_in
from web.times import format_moment

pytestmark = pytest.mark.django_db

Mode = Callable[..., None]


@pytest.fixture
def mode() -> Mode:
    def change(sign_up: str, **fields: Any) -> None:
        site.site_copy.set(site.Site(chosen_sign_up=sign_up, **fields))

    return change


@pytest.fixture
def keeper() -> User:
    return UserFactory(username="keeper", is_superuser=True, is_staff=True)


def post(username: str = "newcomer", **fields: str) -> Any:
    return APIClient().post(f"{API}/users", {"username": username, "password": PASSWORD, **fields})


def send(username: str = "newcomer", **fields: str) -> Any:
    return Client().post("/signup", {"username": username, "password": PASSWORD, **fields})


# --- Closed ----------------------------------------------------------------------------------------------
def test_a_closed_site_refuses_also_those_with_an_invitation(mode: Mode, keeper: User) -> None:
    code = invitations.create(user=keeper).code
    mode(SignUp.CLOSED)
    for invite in ("", code):
        response = post(invite=invite)
        assert response.status_code == 403
        assert response.json() == {"detail": "This site takes no new accounts.", "code": "sign_up_closed"}
    page = Client().get("/signup")
    assert page.status_code == 200
    assert "isn't open for new accounts" in page.content.decode()
    assert 'name="password"' not in page.content.decode()
    assert send(invite=code).status_code == 403
    assert User.objects.count() == 1
    inside = logged_in(keeper)
    assert "isn't open for new accounts" in inside.get("/settings/invitations").content.decode()


def test_the_environment_closes_a_site_that_its_admin_opened(mode: Mode, settings: Any) -> None:
    mode(SignUp.OPEN)
    settings.SIGN_UP = "closed"
    assert post().status_code == 403


# --- Addresses in use ------------------------------------------------------------------------------------
@pytest.mark.slow
def test_an_address_in_use_is_not_told_by_bytes_or_statements(mode: Mode) -> None:
    """Page, API and settings answer alike. Only the letter to the address tells."""
    ann: User = UserFactory(username="ann")
    addresses.add(user=ann, address="ann@example.org")
    addresses.prove_by_code(user=ann, code=Letter.objects.latest("pk").context["code"])
    for sign_up in (SignUp.OPEN, SignUp.APPROVAL):
        mode(sign_up)
        seen = {_trace(address) for address in ("free@example.org", "ann@example.org", "other@example.org")}
        assert len(seen) == 1
    used = Letter.objects.filter(address="ann@example.org", kind="address_taken")
    assert used.count() == 4
    assert (
        not Letter.objects.filter(address="ann@example.org", context__has_key="code").exclude(user_id=ann.pk).exists()
    )


def _trace(address: str) -> tuple[Any, ...]:
    """Answers and SQL shapes of joining with an address and of adding it."""
    User.objects.filter(username__startswith="new").delete()
    Application.objects.all().delete()
    reason = {"reason": "to read", "email": address}
    with CaptureQueriesContext(connection) as statements:
        api, page = post("newone", **reason), send("newtwo", **reason)
    user: User = UserFactory(username="newthree")
    inside = logged_in(user)
    with CaptureQueriesContext(connection) as more:
        added = inside.post("/settings/email", {"email": address})
    told = {name: value for name, value in api.json().items() if name in ("username", "state", "detail")}
    shapes = tuple(
        re.sub(r"'[^']*'|\d+", "?", each["sql"]) for each in statements.captured_queries + more.captured_queries
    )
    return (
        api.status_code,
        str(told),
        page.status_code,
        page["Location"],
        added.status_code,
        added["Location"],
        shapes,
    )


# --- Invitations -----------------------------------------------------------------------------------------
def test_an_invitation_lets_in_as_often_as_it_says(mode: Mode, keeper: User) -> None:
    mode(SignUp.INVITE)
    invitation = invitations.create(user=keeper, most_uses=2)
    assert post().status_code == 400
    assert list(post().json()) == ["invite"]
    assert post(invite="x" * 22).status_code == 400
    assert post("ann", invite=invitation.code).status_code == 201
    assert send("bob", invite=invitation.code).status_code == 302
    third = post("cem", invite=invitation.code)
    assert (third.status_code, list(third.json())) == (400, ["invite"])
    assert [row.user.username for row in Invited.objects.filter(invitation=invitation).order_by("user_id")] == [
        "ann",
        "bob",
    ]


def test_a_page_of_an_invitation_says_who_invites(mode: Mode, keeper: User) -> None:
    mode(SignUp.INVITE)
    code = invitations.create(user=keeper).code
    page = Client().get(f"/invite/{code}").content.decode()
    assert "keeper" in page
    assert f'value="{code}"' in page
    without = Client().get("/signup").content.decode()
    assert "You need an invitation" in without
    assert 'name="password"' not in without
    wrong = Client().get("/invite/nonesuch").content.decode()
    assert "used up, expired or revoked" in wrong
    assert 'name="password"' not in wrong


def test_a_refused_name_uses_no_invitation(mode: Mode, keeper: User) -> None:
    mode(SignUp.INVITE)
    invitation = invitations.create(user=keeper)
    assert post("keeper", invite=invitation.code).status_code == 400
    invitation.refresh_from_db()
    assert invitation.uses == 0


def test_an_invitation_ends(mode: Mode, keeper: User) -> None:
    mode(SignUp.INVITE)
    late, revoked = invitations.create(user=keeper, days=7), invitations.create(user=keeper)
    assert invitations.revoke(invitation_id=revoked.pk)
    assert not invitations.revoke(invitation_id=revoked.pk)
    assert post(invite=revoked.code).status_code == 400
    with time_machine.travel(timezone.now() + timedelta(days=8), tick=False):
        assert post(invite=late.code).status_code == 400
    assert post(invite=late.code).status_code == 201


def test_the_invitations_of_a_member_end_with_their_right_to_invite(mode: Mode) -> None:
    ann = UserFactory(username="ann")
    mode(SignUp.INVITE, members_invite=True)
    code = invitations.create(user=ann).code
    mode(SignUp.INVITE, members_invite=False)
    assert post(invite=code).status_code == 400
    with pytest.raises(PermissionDenied):
        invitations.create(user=ann)
    mode(SignUp.INVITE, members_invite=True)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert post(invite=code).status_code == 400


@pytest.mark.parametrize("fields", [{"most_uses": 0}, {"most_uses": 11}, {"days": 0}, {"days": 366}, {"days": None}])
def test_members_make_small_invitations(mode: Mode, fields: dict[str, Any]) -> None:
    mode(SignUp.OPEN, members_invite=True)
    with pytest.raises(ValidationError):
        invitations.create(user=UserFactory(), **fields)


@pytest.mark.slow
def test_a_member_has_fifty_good_invitations(mode: Mode) -> None:
    ann = UserFactory()
    mode(SignUp.OPEN, members_invite=True)
    for _ in range(invitations.GOOD):
        last = invitations.create(user=ann)
    with pytest.raises(ValidationError):
        invitations.create(user=ann)
    invitations.revoke(invitation_id=last.pk, user=ann)
    invitations.create(user=ann)


@pytest.mark.slow
def test_revoked_invitations_hide_no_good_ones(mode: Mode) -> None:
    ann = UserFactory()
    mode(SignUp.OPEN, members_invite=True)
    good = [invitations.create(user=ann) for _ in range(invitations.GOOD - 1)]
    for _ in range(invitations.LATEST):
        invitations.revoke(invitation_id=invitations.create(user=ann).pk, user=ann)
    listed = invitations.made_by(ann)
    assert {row.pk for row in listed if row.is_good} == {row.pk for row in good}
    assert len(listed) == invitations.LATEST + len(good)
    invitations.create(user=ann)
    with pytest.raises(ValidationError):
        invitations.create(user=ann)


def test_a_stranger_revokes_no_invitation_of_another(keeper: User) -> None:
    invitation = invitations.create(user=keeper)
    assert not invitations.revoke(invitation_id=invitation.pk, user=UserFactory())
    assert invitations.is_valid(invitation.code)


@pytest.fixture
def inviting(mode: Mode) -> tuple[User, Client]:
    mode(SignUp.INVITE, members_invite=True, name="Reading room")
    ann: User = UserFactory(username="ann", display_name="Win a prize at evil.example")
    client = logged_in(ann)
    return ann, client


def invite(client: Client, address: str) -> Any:
    return client.post("/settings/invitations", {"most_uses": "1", "days": "7", "email": address})


@pytest.mark.slow
def test_a_new_invitation_is_told_with_its_link(inviting: tuple[User, Client]) -> None:
    _, client = inviting
    page = client.post("/settings/invitations", {"most_uses": "1", "days": "7"}, follow=True).content.decode()
    said = page[page.index('<ul class="messages"') : page.index('id="new-invitation"')]
    made = Invitation.objects.get()
    assert f"/invite/{made.code}" in said
    assert made.expires_at is not None
    assert f"expires {format_moment(made.expires_at, 'DATETIME_FORMAT')}<" in page


@pytest.mark.slow
def test_a_letter_brings_an_invitation(inviting: tuple[User, Client]) -> None:
    ann, client = inviting
    assert invite(client, "Friend@Example.org").status_code == 302
    letter = Letter.objects.get()
    assert (letter.kind, letter.address, letter.user_id) == ("invitation", "friend@example.org", ann.pk)
    for language, said in (("en", "@ann invites you to Reading room"), ("zh-hans", "@ann 邀请你加入 Reading room")):
        letter.language = language
        message = compose(letter)
        assert message.subject == said
        assert "evil.example" not in message.message().as_string(), "no words of the member's own"
    link = re.search(r"http\S+/invite/\S+", str(message.body))
    assert link
    assert send(invite=link[0].rsplit("/", 1)[1]).status_code == 302
    assert Invited.objects.get().invitation.made_by_id == ann.pk


def test_letters_with_invitations_are_limited_and_tell_of_no_account(
    inviting: tuple[User, Client], settings: Any
) -> None:
    """Limited per member and per invited address."""
    settings.RATES = settings.RATES | {"invite_mail": "4/day", "invite_address": "2/day"}
    _ann, client = inviting
    UserFactory(username="member", email="member@example.org")
    seen = set()
    for address in ("member@example.org", "free@example.org", "free@example.org", "free@example.org"):
        answer = invite(client, address)
        told = [str(each) for each in get_messages(answer.wsgi_request)]
        seen.add((answer.status_code, answer["Location"], told[-1]))
    assert len(seen) == 1
    assert invite(client, "other@example.org").status_code == 429
    sent = Letter.objects.order_by("pk").values_list("address", flat=True)
    assert list(sent) == ["member@example.org", "free@example.org", "free@example.org"]
    assert Invitation.objects.count() == 4


@pytest.mark.parametrize(
    "address", ["nobody", "a@b", "a@example.org\nBcc: all@example.org", "a@example.org, b@example.org"]
)
def test_no_letter_goes_to_what_is_no_address(inviting: tuple[User, Client], address: str) -> None:
    assert invite(inviting[1], address).status_code == 422
    with pytest.raises(ValidationError):
        invitations.create(user=inviting[0], address=address)
    assert not Letter.objects.exists()
    assert not Invitation.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_for_the_last_use_one_gets_in(mode: Mode, keeper: User) -> None:
    mode(SignUp.INVITE)
    code = invitations.create(user=keeper).code

    def join(number: int) -> bool:
        try:
            return joining.join(joining.SignUpInput(f"newcomer-{number}", PASSWORD), invite=code) is not None
        except ValidationError as error:
            return "invite" not in error.error_dict

    assert sorted(at_once(*(partial(join, number) for number in range(4)))) == [False, False, False, True]
    assert Invited.objects.count() == 1
    assert Invitation.objects.get().uses == 1
    assert User.objects.count() == 2


def test_guessed_codes_count_against_their_address(mode: Mode, keeper: User, settings: Any) -> None:
    settings.RATES = settings.RATES | {"invite": "3/hour"}
    mode(SignUp.INVITE)
    code = invitations.create(user=keeper, most_uses=10).code
    for _ in range(5):
        assert Client().get(f"/invite/{code}").status_code == 200, "a good one costs nothing"
    assert [Client().get(f"/invite/guess-{number}").status_code for number in range(4)] == [200, 200, 200, 429]
    assert post(invite="guess").status_code == 429
    assert Client(REMOTE_ADDR="192.0.2.7").get(f"/invite/{code}").status_code == 200, "of another address"


def test_an_invitation_is_kept_also_by_an_open_site(mode: Mode, keeper: User) -> None:
    mode(SignUp.OPEN)
    invitation = invitations.create(user=keeper)
    assert post("ann", invite=invitation.code).status_code == 201
    assert post("bob", invite=invitation.code).status_code == 201, "used up, and not needed"
    assert Invited.objects.get().user.username == "ann"


# --- Approval --------------------------------------------------------------------------------------------
def test_an_application_waits_and_is_no_user(mode: Mode) -> None:
    mode(SignUp.APPROVAL)
    assert list(post().json()) == ["reason"]
    response = post(reason="I read a lot.", email="new@example.org")
    assert (response.status_code, response.json()) == (202, {"state": "waiting"})
    assert not User.objects.exists()
    application = Application.objects.get()
    assert (application.reason, application.email) == ("I read a lot.", "new@example.org")
    assert applications.is_waiting("NEWCOMER", PASSWORD)
    assert not applications.is_waiting("newcomer", "another password")
    assert post("NewComer", reason="Me too.").json() == {"username": ["This username is taken."]}

    user = applications.approve(application_id=application.pk)
    assert user is not None
    assert user.check_password(PASSWORD)
    assert not Application.objects.exists()
    assert applications.approve(application_id=application.pk) is None, "another decided before"
    assert not applications.reject(application_id=application.pk)


def test_only_the_owner_of_an_application_is_told_that_it_waits(mode: Mode) -> None:
    mode(SignUp.APPROVAL)
    post("newcomer", reason="I read a lot.")
    for password in (PASSWORD, "another password"):
        fields = {"username": "NewComer", "password": password}
        answer = APIClient().post(f"{API}/auth/token", fields)
        assert answer.status_code == 400
        assert ("waits" in str(answer.json())) == (password == PASSWORD)
        page = Client().post("/login", fields)
        assert page.status_code == 422
        assert ("Your application is still waiting" in page.content.decode()) == (password == PASSWORD)


def test_the_page_asks_for_the_reason_and_leads_to_a_page_that_says_it_waits(mode: Mode) -> None:
    mode(SignUp.APPROVAL)
    assert 'name="reason"' in Client().get("/signup").content.decode()
    refused = send()
    assert refused.status_code == 422
    assert "Tell us why you want to join." in refused.content.decode()
    sent = send(reason="I read a lot.")
    assert (sent.status_code, sent.headers["Location"]) == (302, "/signup/waiting")
    assert "Application sent" in Client().get("/signup/waiting").content.decode()


def test_a_missing_reason_is_told_with_all_else_that_is_wrong(mode: Mode) -> None:
    mode(SignUp.APPROVAL)
    UserFactory(username="taken")
    refused = send("taken", email="no address", display_name="a\u202eb")
    assert set(refused.context["form"].errors) == {"username", "email", "display_name", "reason"}
    assert set(post("taken", email="no address").json()) == {"username", "email", "reason"}


@pytest.mark.parametrize("sign_up", [SignUp.INVITE, SignUp.CLOSED])
def test_who_may_not_sign_up_learns_of_no_name(mode: Mode, sign_up: str) -> None:
    mode(sign_up)
    UserFactory(username="taken")
    for invite in ("", "wrong"):
        pages = [send(name, email="no address", invite=invite).content.decode() for name in ("taken", "newcomer")]
        assert not any("taken." in page for page in pages)


def test_a_form_opened_while_the_site_was_open_is_judged_by_the_mode_of_now(mode: Mode) -> None:
    mode(SignUp.OPEN)
    assert 'name="reason"' not in Client().get("/signup").content.decode()
    mode(SignUp.APPROVAL)
    refused = send()
    assert refused.status_code == 422
    assert 'name="reason"' in refused.content.decode(), "the form asks for what it lacks"
    mode(SignUp.INVITE)
    assert "You need an invitation" in send().content.decode()
    assert not User.objects.exists()


def test_a_rejected_application_goes_with_all_it_says(mode: Mode) -> None:
    mode(SignUp.APPROVAL)
    post(reason="I read a lot.")
    assert applications.reject(application_id=Application.objects.get().pk)
    assert not Application.objects.exists()
    assert post(reason="I read more.").status_code == 202, "the name is free"


@pytest.mark.parametrize(("decision", "words"), [("approve", "is approved"), ("reject", "t approve")])
def test_a_letter_tells_the_decision_in_the_language_of_the_form(mode: Mode, decision: str, words: str) -> None:
    mode(SignUp.APPROVAL, name="Reading room\r\nBcc: all@example.org")
    for name, email in (("ann", "ann@example.org"), ("bob", "")):
        post(name, reason="I read a lot.", email=email)
        getattr(applications, decision)(application_id=Application.objects.get().pk)
    letter = Letter.objects.get(kind__startswith="application_")
    assert letter.address == "ann@example.org"
    message = compose(letter)
    assert words in message.body
    assert "Reading room" in message.subject
    assert "\n" not in message.subject
    assert "Bcc" not in message.message()
    letter.language = "zh-hans"
    assert words not in compose(letter).body


def test_an_application_on_which_no_admin_decides_goes(mode: Mode, settings: Any) -> None:
    settings.APPLICATION_DAYS = 30
    mode(SignUp.APPROVAL)
    post("early", reason="I read a lot.")
    Application.objects.update(created_at=timezone.now() - timedelta(days=29))
    assert applications.forget_old() == 0
    Application.objects.update(created_at=timezone.now() - timedelta(days=31))
    assert applications.forget_old() == 1
    assert not Application.objects.exists()


def test_a_name_that_was_taken_meanwhile_is_refused_and_the_application_stays(mode: Mode) -> None:
    mode(SignUp.APPROVAL)
    post(reason="I read a lot.")
    UserFactory(username="NEWCOMER")  # the previous version does not look at applications
    with pytest.raises(ValidationError):
        applications.approve(application_id=Application.objects.get().pk)
    assert Application.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_for_one_name_one_wins_user_or_application(mode: Mode) -> None:
    mode(SignUp.OPEN)

    def ask(number: int) -> bool:
        candidate = joining.SignUpInput("Ian" if number % 2 else "ian", PASSWORD, reason="I read a lot.")
        try:
            if number < 2:
                joining.sign_up(username=candidate.username, password=PASSWORD)
            else:
                joining.apply(candidate)
        except ValidationError:
            return False
        return True

    assert sum(at_once(*(partial(ask, number) for number in range(4)))) == 1
    assert User.objects.count() + Application.objects.count() == 1


def test_an_invitation_spares_the_approval(mode: Mode, keeper: User) -> None:
    mode(SignUp.APPROVAL)
    assert post(invite=invitations.create(user=keeper).code).status_code == 201
    assert post("other", invite="no code", reason="I read a lot.").status_code == 202


# --- Bad input and abuse ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("email", "new@example.org\nBcc: all@example.org"),
        ("email", "no address"),
        ("email", f"{'x' * 250}@example.org"),
        ("reason", "x" * 1_001),
        ("reason", "nul \x00"),
        ("invite", "x" * 33),
        ("is_superuser", "1"),
        ("is_active", "1"),
    ],
)
def test_bad_fields(mode: Mode, field: str, value: str) -> None:
    mode(SignUp.APPROVAL)
    response = post(**{"reason": "I read a lot.", field: value})
    assert response.status_code == 400
    assert not Application.objects.exists()


def test_an_address_waits_for_its_proof(mode: Mode, settings: Any) -> None:
    mode(SignUp.OPEN)
    assert post("ann", email="Ann@example.org").status_code == 201
    ann = User.objects.get()
    assert (ann.email, addresses.confirmed_address(ann), addresses.unconfirmed_address(ann)) == (
        "",
        "",
        "ann@example.org",
    )
    settings.EMAIL_REQUIRED = True
    for answer in (post("bob"), send("bob")):
        assert answer.status_code in (400, 422)
    assert User.objects.count() == 1
    mode(SignUp.APPROVAL)
    assert post("bob", email="bob@example.org", reason="I read a lot.").status_code == 202
    user = applications.approve(application_id=Application.objects.get().pk)
    assert user is not None
    assert (addresses.confirmed_address(user), addresses.unconfirmed_address(user)) == ("", "bob@example.org")


def test_sign_up_tells_nothing_of_an_email_that_exists(mode: Mode) -> None:
    UserFactory(username="ann", email="ann@example.org")
    for kind in (SignUp.OPEN, SignUp.APPROVAL):
        mode(kind)
        answers = [
            post(f"{kind}-{name}", email=f"{name}@example.org", reason="I read a lot.") for name in ("ann", "bob")
        ]
        assert answers[0].status_code == answers[1].status_code
        assert answers[0].json().keys() == answers[1].json().keys()


@pytest.mark.slow
def test_a_thousand_sign_ups_from_one_network_are_refused(mode: Mode, settings: Any) -> None:
    mode(SignUp.OPEN)
    settings.RATES = settings.RATES | {"signup_network": "5/day"}

    def answers(address: str) -> int:
        fields = {"username": f"u{address}".replace(".", "-").replace(":", "-"), "password": PASSWORD}
        return APIClient(REMOTE_ADDR=address).post(f"{API}/users", fields).status_code

    assert [answers(f"192.0.2.{number}") for number in range(7)] == [201] * 5 + [429] * 2
    assert answers("192.0.3.1") == 201
    assert [answers(f"2001:db8:1:{number}::1") for number in range(7)] == [201] * 5 + [429] * 2
    assert answers("2001:db8:2::1") == 201


def test_sign_ups_of_an_address_have_a_rate_of_the_day(mode: Mode, settings: Any) -> None:
    mode(SignUp.OPEN)
    settings.RATES = settings.RATES | {"signup_day": "2/day"}
    assert [post(f"newcomer-{number}").status_code for number in range(3)] == [201, 201, 429]


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_a_sign_up_leads_to_this_site_only(mode: Mode, target: str) -> None:
    mode(SignUp.OPEN)
    assert send(next=target).headers["Location"] == "/welcome"


def test_the_welcome_asks_once_for_a_name(mode: Mode, client: Client) -> None:
    mode(SignUp.OPEN)
    account = {"username": "newcomer", "display_name": "New", "password": PASSWORD}
    assert client.post("/signup", account)["Location"] == "/welcome"
    assert client.get("/welcome")["Location"] == "/welcome/people", "there are no hashtags to choose from either"
    say(UserFactory(), "#books")
    cache.clear()
    page = client.get("/welcome").content.decode()
    assert ("#books" in page, "display_name" in page) == (True, False)
    assert client.post("/welcome", {"next": ""})["Location"] == "/welcome/people"
    assert User.objects.get(username="newcomer").display_name == "New"


def test_the_welcome_leads_back_to_a_shared_post(mode: Mode, client: Client) -> None:
    mode(SignUp.OPEN)
    post = f"/items/{say(UserFactory()).pk}"
    account = {"username": "newcomer", "password": PASSWORD, "next": post}
    steps = [client.post("/signup", account)["Location"]]
    assert steps == [f"/welcome?next={quote_plus(post)}"]
    assert f'href="{post}"' in client.get(steps[0]).content.decode()
    steps.append(client.post("/welcome", {"display_name": "New", "next": post})["Location"])
    assert steps[1] == f"/welcome/people?next={quote_plus(post)}"
    assert f'<a class="button" href="{post}">Done</a>' in client.get(steps[1]).content.decode()
    assert '<a class="button" href="/">Done</a>' in client.get("/welcome/people?next=//evil.example").content.decode()


# --- One's own data --------------------------------------------------------------------------------------
@pytest.mark.slow
def test_invitations_are_in_the_archive_and_go_with_the_account(mode: Mode, keeper: User) -> None:
    mode(SignUp.INVITE, members_invite=True)
    ann = joining.join(joining.SignUpInput("ann", PASSWORD), invite=invitations.create(user=keeper).code)
    assert ann is not None
    made = invitations.create(user=ann, most_uses=3)
    bob = joining.join(joining.SignUpInput("bob", PASSWORD), invite=made.code)
    assert bob is not None
    target = io.BytesIO()
    write_archive(ann, target)
    with zipfile.ZipFile(target) as archive:
        (told,) = [json.loads(line) for line in archive.read("invitations.jsonl").decode().splitlines()]
        account = json.loads(archive.read("account.json"))
    assert (told["code"], told["uses"], told["most_uses"]) == (made.code, 1, 3)
    assert account["was_invited"] is True

    delete_account(user=ann)
    settle(ann)
    assert [row.made_by for row in Invitation.objects.all()] == [keeper]
    assert not Invited.objects.exists(), "neither by whose ann came, nor who came by hers"
    assert User.objects.filter(pk=bob.pk, is_active=True).exists()
    assert not invitations.is_valid(made.code)


@pytest.mark.parametrize("code", ["a\0b", "%00"])
def test_a_code_that_no_column_can_hold_is_no_invitation(code: str) -> None:
    assert not invitations.is_valid(code)
    assert Client().get(f"/invite/{quote(code)}").status_code == 200
