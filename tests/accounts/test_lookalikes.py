import string

import pytest
from confusable_homoglyphs import confusables
from django.core.exceptions import ValidationError
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts import actions
from accounts.about import site
from accounts.about.models import SignUp
from accounts.imitation import check_imitation
from accounts.joining import actions as joining
from accounts.joining import applications
from accounts.lookalikes import skeleton, skeleton_of_words
from accounts.models import Application, User
from tests.support.api import API
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db

LETTERS = f"{string.ascii_letters}{string.digits}_-"


@pytest.mark.slow
@given(st.text(LETTERS, max_size=30))
def test_postgresql_and_python_make_the_same_skeleton(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT feedsite_skeleton(%s)", [name])
        assert cursor.fetchone() == (skeleton(name),)


def test_what_unicode_calls_confusable_among_the_letters_of_usernames_shares_a_skeleton() -> None:
    known = ((letter, other["c"]) for letter in LETTERS for other in confusables.confusables_data.get(letter, []))
    pairs = [(letter, other) for letter, other in known if set(other) <= set(LETTERS)]
    assert ("l", "I") in pairs
    assert [pair for pair in pairs if skeleton(f"a{pair[0]}b") != skeleton(f"a{pair[1]}b")] == []


@pytest.mark.parametrize(
    ("taken", "wanted"),
    [
        ("google", "g00gle"),
        ("paul", "pau1"),
        ("paul", "pauI"),
        ("Ian", "lan"),
        ("modern", "modem"),
        ("wanda", "vvanda"),
        ("ann_lee", "ann-lee"),
        ("ann_lee", "ann__lee"),
        ("ann_lee", "Ann_-_Lee"),
    ],
)
def test_a_name_that_looks_like_an_existing_one_is_refused(taken: str, wanted: str) -> None:
    UserFactory(username=taken)
    response = APIClient().post(f"{API}/users", {"username": wanted, "password": PASSWORD})
    assert response.status_code == 400
    assert response.json() == {"username": ["This username looks too much like an existing one. Choose another."]}


@pytest.mark.parametrize(("taken", "wanted"), [("ian", "lan"), ("annlee", "ann-lee"), ("ann", "anne"), ("dan", "clan")])
def test_names_that_differ_to_the_eye_are_let_in(taken: str, wanted: str) -> None:
    UserFactory(username=taken)
    assert joining.sign_up(username=wanted, password=PASSWORD).username == wanted


def test_those_who_look_alike_since_before_stay() -> None:
    both = UserFactory(username="paul"), UserFactory(username="pau1")
    assert {user.pk for user in User.objects.similar_to("PAUL")} == {user.pk for user in both}
    for user in both:
        actions.edit_profile(user=user, bio="Still here.")
        user.full_clean(exclude=["password"])


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("\u0410dmin", "admin"),
        ("\uff46\uff45\uff45\uff44 \uff53ite", "feedsite"),
        ("M\u200boderat\u043er", "moderator"),
        ("S.t.a.f.f", "staff"),
        ("\u1d00\u1d05\u1d0d\u026a\u0274", "admin"),
        ("\U0001f170\U0001f1e9\U0001d5fa\u24d8\u0272", "admin"),
        ("\u2605 |Adm!n| \u2605", "admin"),
        ("@dm1n", "admin"),
        ("\u0111\u00e4min", "damin"),
        ("$upp0r7", "support"),
    ],
)
def test_a_skeleton_of_words_knows_all_scripts(text: str, same: str) -> None:
    assert skeleton_of_words(text) == skeleton_of_words(same)


@pytest.mark.parametrize(
    "name",
    [
        "Admin",
        "\u0410dmin",
        "feedsite",
        "Feedsite Support",
        "f e e d s i t e",
        "管理员",
        "Reading Room",
        "reading room team",
        "The official security team",
        "Support 24",
    ],
)
def test_a_display_name_may_not_speak_for_the_site(name: str) -> None:
    site.site_copy.set(site.Site(name="Reading Room" if "eading" in name else "feedsite"))
    with pytest.raises(ValidationError) as refused:
        actions.edit_profile(user=UserFactory(), display_name=name)
    assert list(refused.value.error_dict) == ["display_name"]
    response = APIClient().post(f"{API}/users", {"username": "newcomer", "password": PASSWORD})
    assert response.status_code == 201


@pytest.mark.parametrize(
    "name",
    [
        *("support", "Staff", "moderator", "root", "help", "security", "abuse", "postmaster", "feedsite"),
        *("supp0rt", "st-aff", "m0derat0r", "R00T", "he1p", "5ecur1ty", "abuse_", "feed-site_team", "admin2"),
    ],
)
def test_a_username_may_not_speak_for_the_site(name: str) -> None:
    refused = APIClient().post(f"{API}/users", {"username": name, "password": PASSWORD})
    assert refused.json() == {"username": ["This name is reserved for this site's admins."]}
    assert joining.sign_up(username=name, password=PASSWORD).username == name  # by a command


def test_an_applicant_may_not_speak_for_the_site_unless_an_admin_lets_them() -> None:
    site.site_copy.set(site.Site(chosen_sign_up=SignUp.APPROVAL))
    with pytest.raises(ValidationError, match="reserved"):
        joining.join(joining.SignUpInput("supp0rt", PASSWORD, reason="I help"))
    row = Application.objects.create(username="support", password="!", reason="I am the new support")
    user = applications.approve(application_id=row.pk)
    assert user is not None
    assert user.username == "support"


@pytest.mark.parametrize(
    "name", ["Ann Keeper", "ann keeper", "\u0410nn-K\u0435eper", "the_boss", "The B0ss", "TheBoss 1"]
)
def test_nobody_takes_a_superusers_name(name: str) -> None:
    boss = UserFactory(username="the_boss", display_name="Ann Keeper", is_superuser=True, is_staff=True)
    for user in (UserFactory(), UserFactory(is_staff=True)):
        with pytest.raises(ValidationError, match="reserved"):
            actions.edit_profile(user=user, display_name=name)
    with pytest.raises(ValidationError, match="reserved"):
        joining.check_sign_up(joining.SignUpInput("annkeeper", PASSWORD))
    assert actions.edit_profile(user=boss, display_name=name).display_name == name
    User.objects.filter(pk=boss.pk).update(is_superuser=False)
    check_imitation("the_boss")


def test_who_has_such_a_name_keeps_it() -> None:
    user = UserFactory(username="support", display_name="Support")
    assert actions.edit_profile(user=user, display_name="Support", bio="Still here.").bio == "Still here."


@pytest.mark.parametrize(
    "name",
    [
        *("", "Admiral Nelson", "Ann of Feedsite", "管理学学生", "🌸", "Team Rocket", "Йога", "1999", "helpful"),
        *("modem", "rooted", "Steam", "Theodora", "service_dog"),
    ],
)
def test_other_display_names_stay_free(name: str) -> None:
    check_imitation(name)


def test_a_site_named_in_signs_keeps_no_name() -> None:
    site.site_copy.set(site.Site(name="★"))
    check_imitation("Ann")
    check_imitation("☆")


def test_staff_may_speak_for_the_site() -> None:
    keeper = UserFactory(is_staff=True)
    assert actions.edit_profile(user=keeper, display_name="Admin").display_name == "Admin"
