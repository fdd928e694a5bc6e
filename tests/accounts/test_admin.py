import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth import authenticate
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from oauth2_provider.models import AccessToken

from accounts.actions import delete_app, issue_token
from accounts.levels import policy
from accounts.levels.big_v import demote
from accounts.models import BigVChange, Level, User
from accounts.signing_in_models import OWN_APP, AppToken, ClientApp
from moderation.models import DailyFigures
from relations import actions
from tests.support.admin import act, text
from tests.support.clients import app_of, token_of
from tests.support.effort import tries
from tests.support.factories import UserFactory
from tests.support.pages import logged_in
from timeline.models import Backfill

pytestmark = pytest.mark.django_db

USERS = "/admin/accounts/user/"


@pytest.mark.slow
def test_the_list_counts_followers_exactly_in_one_query(admin_client: Client, django_assert_num_queries: Any) -> None:
    """Staged follows count too."""
    star = UserFactory.create(username="star", follower_count=40)
    for fan in UserFactory.create_batch(3):
        actions.follow(follower=fan, followee=star)
    with django_assert_num_queries(3):  # estimate, count, rows
        page = text(admin_client.get(USERS))
    assert '<td class="field-followers">43</td>' in page
    UserFactory.create_batch(20)
    with django_assert_num_queries(3):
        admin_client.get(USERS)


def column(admin_client: Client, name: str) -> int:
    shown = admin_client.get(USERS).context["cl"].list_display
    return [getattr(one, "__name__", one) for one in shown].index(name)


@pytest.mark.slow
def test_the_list_sorts_by_followers(admin_client: Client) -> None:
    few, many, most = (UserFactory.create(follower_count=count) for count in (3, 40, 500))
    place = column(admin_client, "followers")
    for order, users in ((f"-{place}", [most, many, few]), (str(place), [few, many, most])):
        shown = [user for user in admin_client.get(USERS, {"o": order}).context["cl"].result_list if user in users]
        assert shown == users


@pytest.mark.long
@pytest.mark.parametrize("sign", ["-", ""])
def test_sorting_by_followers_reads_an_index(admin_client: Client, sign: str) -> None:
    """For any number of users and of ties."""
    place = column(admin_client, "followers")
    User.objects.bulk_create([User(username=f"u{n}", follower_count=n % 3) for n in range(3_000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE accounts_user")
    with CaptureQueriesContext(connection) as queries:
        text(admin_client.get(USERS, {"o": f"{sign}{place}"}))
    (listed,) = [query["sql"] for query in queries if 'ORDER BY "accounts_user"."follower_count"' in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {listed}")
        plan = str(cursor.fetchall())
    assert "user_by_followers" in plan
    assert "Sort" not in plan
    assert "Seq Scan on accounts_user" not in plan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"is_big_v__exact": "1"}, {"star"}),
        ({"level__exact": "1"}, {"quiet"}),
        ({"is_active__exact": "0"}, {"gone"}),
        ({"is_staff__exact": "1"}, {"admin"}),
        ({"q": "TAR"}, {"star"}),
        ({"q": "silent one"}, {"quiet"}),
    ],
)
def test_filters_and_search(admin_client: Client, query: dict[str, str], shown: set[str]) -> None:
    UserFactory.create(username="star", is_big_v=True)
    UserFactory.create(username="quiet", display_name="The Silent One", level=Level.MONTHLY)
    UserFactory.create(username="gone", is_active=False)
    response = admin_client.get(USERS, query)
    assert {user.username for user in response.context["cl"].result_list} == shown


def found(admin_client: Client, term: str, **query: str) -> list[str]:
    response = admin_client.get(USERS, {"q": term, **query})
    assert response.status_code == 200
    return [user.username for user in response.context["cl"].result_list]


@pytest.mark.slow
def test_users_are_found_by_id_e_mail_and_name_the_exact_first(admin_client: Client) -> None:
    ann = UserFactory.create(username="ann", email="Ann@Example.org")
    UserFactory.create(username="joanna", display_name="Ann Other")
    UserFactory.create(username="anniversary")
    bob = UserFactory.create(username="bob", is_active=False, display_name="王小明")
    assert found(admin_client, str(bob.pk)) == ["bob"]
    assert found(admin_client, "ann@example.ORG") == ["ann"]
    assert found(admin_client, "ANN") == ["ann", "anniversary", "joanna"]
    assert found(admin_client, "@ann") == ["ann", "anniversary", "joanna"]
    assert found(admin_client, "other ann") == ["joanna"]
    assert found(admin_client, "小明") == ["bob"]
    assert found(admin_client, "%") == []
    assert found(admin_client, "ann", o="1") == ["ann", "anniversary", "joanna"]
    assert f">{ann.pk}<" in text(admin_client.get(USERS, {"q": "ann"}))


@pytest.mark.slow
def test_a_name_of_too_many_is_told(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accounts.user_admin.FOUND", 2)
    UserFactory.create_batch(4, display_name="Common Name")
    assert "More than 2 users match" in text(admin_client.get(USERS, {"q": "common"}))
    assert "More than" not in text(admin_client.get(USERS, {"q": "admin"}))
    after = text(
        act(
            admin_client,
            f"{USERS}?q=common",
            "deactivate",
            User.objects.filter(display_name="Common Name")[0],
            confirmed="yes",
        )
    )
    assert "1 user deactivated" in after
    assert after.count("More than 2 users match") == 1


@pytest.mark.slow
def test_finding_users_looks_through_no_table(admin_client: Client) -> None:
    UserFactory.create_batch(50, email="x@example.org")
    UserFactory.create(username="needle", email="needle@example.org")
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
    for term in ("needle", "needle@example.org"):
        with CaptureQueriesContext(connection) as queries:
            assert found(admin_client, term) == ["needle"]
        for query in queries:
            if "accounts_user" in query["sql"] and query["sql"].startswith("SELECT"):
                with connection.cursor() as cursor:
                    cursor.execute(f"EXPLAIN {query['sql']}")
                    assert "Seq Scan on accounts_user" not in str(cursor.fetchall()), query["sql"]


@pytest.mark.slow
def test_a_users_page_leads_to_all_that_is_theirs(admin_client: Client) -> None:
    user = UserFactory.create(username="user")
    page = text(admin_client.get(f"{USERS}{user.pk}/change/"))
    links = re.findall(rf'<a href="(/admin/[a-z/]+/\?[^"]*(?:user|{user.pk})[^"]*)"', page)
    assert len(links) == 14  # the 15th is the moderators' page
    for link in links:
        assert admin_client.get(link.replace("&amp;", "&")).status_code == 200, link
    assert 'href="/@user"' in page
    looker = UserFactory.create(is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_user"))
    client = logged_in(looker)
    assert "/admin/items/item/?" not in text(client.get(f"{USERS}{user.pk}/change/"))


def verb(client: Client, user: User, name: str, **data: str) -> str:
    return text(client.post(f"{USERS}{user.pk}/big-v/{name}/", data, follow=True))


@pytest.mark.slow
def test_one_click_makes_a_big_v_and_a_second_does_no_harm(admin_client: Client) -> None:
    user = UserFactory.create(username="user")
    page = text(admin_client.get(f"{USERS}{user.pk}/change/"))
    assert f'action="{USERS}{user.pk}/big-v/make/"' in page
    assert "This is an ordinary account." in page
    assert "@user is a big account now." in verb(admin_client, user, "make", confirmed="yes")
    page = verb(admin_client, user, "make", confirmed="yes")
    assert "@user is already a big account." in page
    assert "This is a big account." in page
    assert [(change.kind, change.by.username) for change in user.big_v_changes.all()] == [("made", "admin")]
    assert page.count("<td>@admin</td>") == 1
    assert text(admin_client.get(f"{USERS}{user.pk}/history/")).count("Made a big account.") == 1


@pytest.mark.slow
def test_one_demotion_asks_first_shows_its_progress_and_is_taken_back(admin_client: Client) -> None:
    star = UserFactory.create(username="star", is_big_v=True, follower_count=1_198)
    for fan in UserFactory.create_batch(2):
        actions.follow(follower=fan, followee=star)
    asked = text(admin_client.get(f"{USERS}{star.pk}/big-v/demote/"))
    assert "We fill the home timelines of 1,200 followers in the background" in asked
    assert "star: 1,200 followers" in verb(admin_client, star, "demote")
    assert not Backfill.objects.exists()
    assert "@star is becoming ordinary." in verb(admin_client, star, "demote", confirmed="yes")
    assert Backfill.objects.get(sender=star).followers == 1_200
    assert User.objects.get(pk=star.pk).is_big_v
    assert "@star is already becoming ordinary." in verb(admin_client, star, "demote", confirmed="yes")
    Backfill.objects.update(done=300)
    for address in (f"{USERS}{star.pk}/change/", USERS):
        page = text(admin_client.get(address))
        assert '<progress value="300" max="1200"' in page
        assert "300 of 1,200" in page
        assert f'action="{USERS}{star.pk}/big-v/make/"' in page
    assert "@star stays a big account." in verb(admin_client, star, "make")
    assert Backfill.objects.get().cancelled_at is not None
    assert [change.kind for change in star.big_v_changes.order_by("pk")] == ["demotion", "taken_back"]


@pytest.mark.slow
def test_the_page_says_that_automatic_tagging_is_off_and_allows_it(admin_client: Client) -> None:
    star = UserFactory.create(username="star", is_auto_big_v=False)
    assert "not automatically" in text(admin_client.get(USERS))
    assert "It won't become big automatically." in text(admin_client.get(f"{USERS}{star.pk}/change/"))
    page = verb(admin_client, star, "allow")
    assert "@star can become big automatically again." in page
    assert "It won't become big automatically." not in page
    assert "@star can already become big automatically." in verb(admin_client, star, "allow")
    assert "not automatically" not in text(admin_client.get(USERS))


@pytest.mark.slow
def test_the_page_says_what_a_post_costs_before_anything_is_pressed(admin_client: Client) -> None:
    user = UserFactory.create(username="user")
    for level in (Level.DORMANT, Level.MONTHLY, Level.DAILY, Level.DAILY):
        actions.follow(follower=UserFactory.create(level=level), followee=user)
    User.objects.filter(pk=user.pk).update(follower_count=396)
    page = text(admin_client.get(f"{USERS}{user.pk}/change/"))
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', page)
    assert rows == [
        ("Followers", "400"),
        ("Deliveries per post as an ordinary account", "about 300 · current"),
        ("Deliveries per post as a big account", "about 200"),
    ]


@pytest.mark.slow
def test_the_page_says_whom_the_policy_pushes_to(admin_client: Client) -> None:
    star = UserFactory.create(username="star", is_big_v=True)
    assert "delivered to followers seen within a day." in text(admin_client.get(f"{USERS}{star.pk}/change/"))
    policy.change(push_level=4)
    assert "delivered to no followers." in text(admin_client.get(f"{USERS}{star.pk}/change/"))


@pytest.mark.slow
def test_the_name_of_a_button_begins_with_its_words(admin_client: Client) -> None:
    """Voice control finds a button by its visible words."""
    UserFactory.create(username="star", is_big_v=True)
    UserFactory.create(username="rising", is_big_v=True)
    UserFactory.create(username="reader")
    demote(user=User.objects.get(username="rising"))
    for language, words in (
        ("en", {"Make big …", "Make ordinary …", "Keep big"}),
        ("zh-hans", {"设为大V…", "取消大V…", "保留大V"}),
    ):
        page = text(admin_client.get(USERS, headers={"Accept-Language": language}))
        cells = re.findall(r'class="button"[^>]*aria-label="([^"]*)">([^<]*)<', page)
        assert {shown for _, shown in cells} == words
        assert all(name.startswith(shown) for name, shown in cells), cells


@pytest.mark.slow
def test_a_deactivated_user_is_refused_with_a_sentence(admin_client: Client) -> None:
    gone = UserFactory.create(username="gone", is_active=False)
    page = text(admin_client.get(f"{USERS}{gone.pk}/change/"))
    assert "You can't make a deactivated account big." in page
    assert "/big-v/make/" not in page
    assert "@gone is deactivated. Reactivate the account first" in verb(admin_client, gone, "make")
    assert not User.objects.get(pk=gone.pk).is_big_v


@pytest.mark.slow
def test_the_buttons_of_the_list_come_back_to_it(admin_client: Client) -> None:
    user = UserFactory.create(username="user")
    here = f"{USERS}?q=user&p=1"
    page = text(admin_client.get(here))
    assert f'name="next" value="{here.replace("&", "&amp;")}" formaction="{USERS}{user.pk}/big-v/make/"' in page
    asked = text(admin_client.post(f"{USERS}{user.pk}/big-v/make/", {"next": here}))
    assert "user: 0 followers" in asked
    assert "A post goes to about 0 followers now, and to about 0 afterwards." in asked
    assert f'name="next" value="{here.replace("&", "&amp;")}"' in asked
    answer = admin_client.post(f"{USERS}{user.pk}/big-v/make/", {"next": here, "confirmed": "yes"})
    assert (answer.status_code, answer["Location"]) == (302, here)
    asked = text(admin_client.get(f"{USERS}{user.pk}/big-v/demote/", {"next": here}))
    assert f'name="next" value="{here.replace("&", "&amp;")}"' in asked
    answer = admin_client.post(f"{USERS}{user.pk}/big-v/make/", {"next": "https://example.org/"})
    assert answer["Location"] == f"{USERS}{user.pk}/change/"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["make", "demote", "allow"])
def test_the_verbs_are_for_those_who_may(admin_client: Client, name: str) -> None:
    """Refused: GET, other sites, strangers, view rights only, and staff acting on staff."""
    user = UserFactory.create(is_auto_big_v=False, is_big_v=name == "demote")
    boss = UserFactory.create(is_staff=True, is_auto_big_v=False, is_big_v=name == "demote")
    looker, clerk = UserFactory.create_batch(2, is_staff=True)
    looker.user_permissions.add(Permission.objects.get(codename="view_user"))
    clerk.user_permissions.set(Permission.objects.filter(codename__in=["view_user", "change_user"]))
    address = f"{USERS}{user.pk}/big-v/{name}/"
    for who, whose, status in [(None, user, 302), (looker, user, 403), (clerk, boss, 403), (clerk, user, 302)]:
        client = Client()
        if who:
            client.force_login(who)
        before = list(BigVChange.objects.values())
        answer = client.post(f"{USERS}{whose.pk}/big-v/{name}/", {"confirmed": "yes"})
        assert answer.status_code == status, who
        assert (who == clerk and whose == user) == (list(BigVChange.objects.values()) != before)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="admin"))
    assert strict.post(address, {"confirmed": "yes"}).status_code == 403
    before = list(BigVChange.objects.values())
    page = text(admin_client.get(address, follow=True))
    assert list(BigVChange.objects.values()) == before
    if name != "demote":
        assert "Nothing has changed. Press the button again." in page, "as after a login on the way"
    assert "/big-v/" not in text(logged_in(looker).get(USERS))
    assert admin_client.post(f"{USERS}999999/big-v/{name}/").status_code == 302
    assert BigVChange.objects.count() == 1


def test_the_history_is_bounded(admin_client: Client) -> None:
    user = UserFactory.create(username="user")
    for number in range(12):
        BigVChange.objects.create(user=user, kind="made", origin="command" if number else "automatic")
    page = text(admin_client.get(f"{USERS}{user.pk}/change/"))
    assert page.count("<td>by a command</td>") == 10
    assert "<td>automatically</td>" not in page
    every = text(admin_client.get(f"/admin/accounts/bigvchange/?user__id__exact={user.pk}"))
    assert every.count("@user</a>") == 12
    assert f"/admin/accounts/bigvchange/?user__id__exact={user.pk}" in page


@pytest.mark.slow
def test_deactivate_and_reactivate_but_never_oneself(admin_client: Client, admin_user: User) -> None:
    user = UserFactory.create()
    asked = text(act(admin_client, USERS, "deactivate", user, admin_user))
    assert "1 user is logged out everywhere" in asked
    assert "Deactivate 1 user" in asked
    assert "1 user not changed: already inactive, yourself" in asked
    assert not User.objects.filter(is_active=False).exists()
    page = text(act(admin_client, USERS, "deactivate", user, admin_user, confirmed="yes"))
    assert "1 user deactivated." in page
    assert "1 user not changed: already inactive, yourself" in page
    assert list(User.objects.filter(is_active=False)) == [user]
    assert "1 user is active again." in text(act(admin_client, USERS, "reactivate", user))
    assert "1 user not changed: active" in text(act(admin_client, USERS, "reactivate", user))
    assert not User.objects.filter(is_active=False).exists()


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fields of each save. None: all."""
    fields: list[Any] = []
    save = User.save

    def noted(self: User, **options: Any) -> None:
        names = options.get("update_fields")
        fields.append(None if names is None else sorted(names))
        save(self, **options)

    monkeypatch.setattr(User, "save", noted)
    return fields


@pytest.mark.slow
def test_an_edit_writes_what_was_edited_and_nothing_else(admin_client: Client, written: list[Any]) -> None:
    """Counts, epoch, level and big-V may change while the form is open."""
    user = UserFactory.create(username="user")
    url = f"{USERS}{user.pk}/change/"
    form = admin_client.get(url).context["adminform"].form
    data = {name: value for name in form.fields if (value := form[name].value()) not in (None, False)}
    written.clear()
    text(admin_client.post(url, data | {"display_name": "New name", "is_big_v": "1", "level": "0"}, follow=True))
    after = User.objects.get(pk=user.pk)
    assert (after.display_name, after.is_big_v, after.level) == ("New name", False, Level.DAILY)
    assert written == [["display_name"]]
    text(admin_client.post(url, data | {"display_name": "New name"}, follow=True))
    assert written == [["display_name"]]


def test_a_new_password_is_all_that_its_form_writes(admin_client: Client, written: list[Any]) -> None:
    user = UserFactory.create(username="user")
    written.clear()
    secret = "a long and new passphrase"
    data = {"password1": secret, "password2": secret, "usable_password": "true"}
    text(admin_client.post(reverse("admin:auth_user_password_change", args=[user.pk]), data, follow=True))
    assert authenticate(username="user", password=secret) == user
    assert written == []  # a statement of its own writes it


@pytest.mark.slow
def test_users_are_created_by_the_rules_of_names(admin_client: Client) -> None:
    data = {"username": "newcomer", "usable_password": "true"}
    data |= {"password1": "a long and new passphrase", "password2": "a long and new passphrase"}
    text(admin_client.post(f"{USERS}add/", data, follow=True))
    user = User.objects.get(username="newcomer")
    assert user.check_password("a long and new passphrase")
    for wrong in ("NEWCOMER", "admin", "two words", ""):
        page = text(admin_client.post(f"{USERS}add/", data | {"username": wrong}))
        assert "errorlist" in page
    assert User.objects.count() == 2


def test_users_are_never_deleted(admin_client: Client) -> None:
    user = UserFactory.create()
    assert admin_client.post(f"{USERS}{user.pk}/delete/", {"post": "yes"}).status_code == 403
    act(admin_client, USERS, "delete_selected", user, post="yes")
    assert User.objects.filter(pk=user.pk).exists()


@pytest.fixture
def clerk() -> User:
    """Staff with every permission, not a superuser."""
    clerk = UserFactory.create(username="clerk", is_staff=True)
    clerk.user_permissions.set(Permission.objects.all())
    return clerk


@pytest.mark.slow
def test_permissions_do_not_lead_to_more_of_them(clerk: User, admin_user: User) -> None:
    """By editing users or groups, or by the password or token of a stronger account."""
    colleague, reader = UserFactory.create(username="colleague", is_staff=True), UserFactory.create(username="reader")
    client = logged_in(clerk)
    before, groups = list(User.objects.order_by("pk").values()), Group.objects.count()
    granted = {"is_staff": "on", "is_superuser": "on", "user_permissions": ["1"], "bio": "mine"}
    for user, status in [(clerk, 302), (reader, 302), (colleague, 403), (admin_user, 403)]:
        answer = client.post(f"{USERS}{user.pk}/change/", {"username": user.username, **granted})
        assert answer.status_code == status, user
        word = {"password1": "grand-new-word-1", "password2": "grand-new-word-1", "usable_password": "true"}
        if status == 403:
            assert client.post(f"{USERS}{user.pk}/password/", word).status_code == 403
    act(client, USERS, "deactivate", colleague, admin_user, confirmed="yes")
    after = [user | {"bio": ""} for user in User.objects.order_by("pk").values()]
    assert after == [user | {"bio": ""} for user in before]
    assert not reader.user_permissions.exists()
    for path in ["auth/group/add/", "accounts/apptoken/add/"]:
        assert client.post(f"/admin/{path}", {"name": "all", "user": admin_user.pk}).status_code == 403
    assert Group.objects.count() == groups
    assert not AccessToken.objects.exists()


def test_no_row_is_shown_by_its_type_and_key(admin_client: Client) -> None:
    """Django's page for it fails for a row with a date as its key."""
    for model in (DailyFigures, User):
        kind = ContentType.objects.get_for_model(model)
        assert admin_client.get(f"/admin/r/{kind.pk}/96/").status_code == 404


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("how", ["permission", "group"])
@pytest.mark.parametrize("is_active", [True, False])
def test_a_service_is_changed_by_superusers_only(clerk: User, admin_client: Client, how: str, is_active: bool) -> None:
    """A service account is not staff, but more powerful than a reader."""
    service = UserFactory.create(username="service", is_active=is_active)
    permission = Permission.objects.get(codename="act_for_others")
    if how == "permission":
        service.user_permissions.add(permission)
    else:
        group = Group.objects.create(name="services")
        group.permissions.add(permission)
        service.groups.add(group)
    client = logged_in(clerk)
    word = {"password1": "grand-new-word-1", "password2": "grand-new-word-1", "usable_password": "true"}
    assert client.post(f"{USERS}{service.pk}/password/", word).status_code == 403
    assert client.post(f"{USERS}{service.pk}/change/", {"username": "mine"}).status_code == 403
    assert "field-password" not in text(client.get(f"{USERS}{service.pk}/change/"))
    for name in ("deactivate", "reactivate"):
        act(client, USERS, name, service, confirmed="yes")
    assert client.post(f"{USERS}{service.pk}/big-v/make/", {"confirmed": "yes"}).status_code == 403
    now = User.objects.get(pk=service.pk)
    assert (now.username, now.is_active, now.is_big_v, now.password) == ("service", is_active, False, service.password)
    assert admin_client.post(f"{USERS}{service.pk}/password/", word).status_code == 302


@pytest.mark.slow
def test_a_new_password_ends_what_the_old_one_opened(admin_client: Client, admin_user: User) -> None:
    user = UserFactory.create()
    session, token = Client(), issue_token(user=user)
    session.force_login(user)
    word = {"password1": "grand-new-word-1", "password2": "grand-new-word-1", "usable_password": "true"}
    assert admin_client.post(f"{USERS}{user.pk}/password/", word).status_code == 302
    assert session.get("/settings").status_code == 302
    assert Client().get("/api/v1/users/me", headers={"Authorization": f"Token {token}"}).status_code == 401
    token = issue_token(user=User.objects.get(pk=user.pk))
    rows = AccessToken.objects.filter(user=user)
    act(admin_client, "/admin/accounts/apptoken/", "delete_selected", *rows, post="yes")
    assert Client().get("/api/v1/users/me", headers={"Authorization": f"Token {token}"}).status_code == 401
    assert LogEntry.objects.filter(user=admin_user).count() == 2


@pytest.mark.slow
def test_staff_sees_apps_and_their_tokens_and_takes_them_away(admin_client: Client) -> None:
    user, apps = UserFactory(username="holder"), [app_of("read"), app_of("read")]
    tokens = [token_of(user, "read", app=app) for app in (apps[0], apps[0], apps[1])]
    own = token_of(None, "read", app=apps[1])
    rows = list(AppToken.objects.order_by("pk"))

    def answers() -> list[int]:
        path = "/api/v1/timelines/home"
        return [Client().get(path, headers={"Authorization": f"Bearer {token}"}).status_code for token in tokens]

    pages = ["apptoken/", f"apptoken/{rows[0].pk}/change/", f"apptoken/{rows[0].pk}/delete/"]
    pages += ["clientapp/", f"clientapp/{apps[0].pk}/change/", f"clientapp/{apps[0].pk}/delete/"]
    pages += [f"apptoken/?application__id__exact={apps[0].pk}", "apptoken/?q=holder"]
    secrets = [*tokens, own, *(row.token_checksum for row in rows), *(app.client_secret for app in apps)]
    for page in pages:
        shown = text(admin_client.get(f"/admin/accounts/{page}"))
        assert "An app" in shown or "holder" in shown, page
        assert [secret for secret in secrets if secret in shown] == [], page
        assert "/admin/r/" not in shown, f"{page}: no page outside the admin shows it"
        if page.endswith("change/"):
            assert "+00:00" not in shown, f"{page}: moments are shown as in lists"
            assert admin_client.post(f"/admin/accounts/{page}", {"scopes": "write"}).status_code == 403
    assert answers() == [200, 200, 200]
    act(admin_client, "/admin/accounts/apptoken/", "delete_selected", rows[1], post="yes")
    assert answers() == [200, 401, 200]
    issue_token(user=user)
    assert "API token" in text(admin_client.get("/admin/accounts/apptoken/"))
    act(admin_client, "/admin/accounts/clientapp/", "delete_selected", ClientApp.objects.own(), post="yes")
    assert admin_client.get(f"/admin/accounts/clientapp/{OWN_APP}/delete/").status_code == 302
    delete_app(app_id=OWN_APP)
    assert AccessToken.objects.filter(application=OWN_APP).exists()
    act(admin_client, "/admin/accounts/clientapp/", "delete_selected", apps[0], post="yes")
    assert answers() == [401, 401, 200]
    assert admin_client.post(f"/admin/accounts/clientapp/{apps[1].pk}/delete/", {"post": "yes"}).status_code == 302
    assert answers() == [401, 401, 401]
    assert not AccessToken.objects.exclude(application=OWN_APP).exists()
    assert admin_client.get("/admin/accounts/apptoken/add/").status_code == 403


READS = ("SELECT", "SAVEPOINT", "RELEASE", "DECLARE")


def addresses() -> list[str]:
    """Every admin page, with the first row of each model."""
    found = [reverse(f"admin:{name}") for name in ("index", "password_change", "jsi18n")]
    found.append(reverse("admin:moderation_wordrule_many"))
    for model in admin.site._registry:
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        found.append(reverse(f"admin:{name}_changelist"))
        found.append(reverse(f"admin:{name}_add"))
        found += [reverse(f"admin:{name}_{page}", args=["1"]) for page in ("change", "delete", "history")]
    return found


@pytest.mark.slow
def test_the_admin_is_for_staff_and_looking_changes_nothing(admin_client: Client, admin_user: User) -> None:
    user, staff = UserFactory.create(), UserFactory.create(is_staff=True)
    clients = {"a stranger": Client(), "a reader": Client(), "staff without a role": Client()}
    clients["a reader"].force_login(user)
    clients["staff without a role"].force_login(staff)
    for path in addresses()[:: tries(3, 1)]:
        for who in ("a stranger", "a reader"):
            answer = clients[who].get(path)
            assert answer.status_code == 302, (who, path)
            assert answer["Location"].startswith("/admin/login/"), (who, path)
        if path not in addresses()[:3]:
            assert clients["staff without a role"].get(path).status_code in (302, 403, 404), path
        with CaptureQueriesContext(connection) as queries:
            assert admin_client.get(path).status_code < 500, path
        assert not [sql for query in queries if not (sql := query["sql"]).startswith(READS)]
    assert admin_client.get("/admin/logout/").status_code == 405
    assert admin_client.get("/admin/").status_code == 200
