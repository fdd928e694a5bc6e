from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from rest_framework.test import APIClient

from accounts.actions import edit_profile
from accounts.models import User
from accounts.naming import check_display_name
from accounts.people import full_name_of, name_of
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

REFUSED = {
    "a line feed": "Ann\nAdmin",
    "a carriage return": "Ann\rAdmin",
    "a tab": "Ann\tAdmin",
    "an escape": "Ann\x1bAdmin",
    "a C1 control": "Ann\x85Admin",
    "a line separator": "Ann\u2028Admin",
    "a paragraph separator": "Ann\u2029Admin",
    "an override": "Ann\u202enimdA",
    "an embedding": "Ann\u202aAdmin",
    "an isolate": "Ann\u2066Admin\u2069",
    "a left-to-right mark": "Ann\u200e",
    "a right-to-left mark": "Ann\u200f",
    "an Arabic letter mark": "Ann\u061c",
    "zero-width spaces": "\u200b\u200b",
    "joiners": "\u200d\u200c",
    "a Hangul filler": "\u3164",
    "a halfwidth filler": "\uffa0",
    "a soft hyphen": "\u00ad",
    "a byte order mark": "\ufeff",
    "variation selectors": "\ufe0f\U000e0100",
    "tags": "\U000e0041\U000e0042",
    "a blank Braille pattern": "\u2800",
    "a null notehead": "\U0001d159",
    "spaces between": "\u200b \u3164",
}
KEPT = [
    "",
    "Ann Other",
    "林美",
    "O\u2019Neil-Smith, Jr.",
    "\u0646\u0631\u06af\u0633\u200c\u062c\u0627\u0646",
    "שרה",
    "👩\u200d👩\u200d👧",
    "❤\ufe0f",
    "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "e\u0301",
    "\u17b4ក",
]


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_a_name_that_deceives_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        check_display_name(name)


@pytest.mark.parametrize("name", KEPT)
def test_a_name_that_people_have_is_kept(name: str) -> None:
    user = UserFactory.create()
    edit_profile(user=user, display_name=name)
    assert User.objects.get(pk=user.pk).display_name == name


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_api_page_and_verb_refuse_it(client: Client, name: str) -> None:
    user: Any = UserFactory.create(display_name="Ann")
    api = APIClient()
    api.force_authenticate(user)
    refused = api.patch("/api/v1/users/me", {"display_name": name})
    assert refused.status_code == 400
    assert list(refused.json()) == ["display_name"]
    client.force_login(user)
    page = client.post("/settings", {"display_name": name, "bio": ""})
    assert page.status_code == 422
    assert "errorlist" in page.content.decode()
    with pytest.raises(ValidationError):
        edit_profile(user=user, display_name=name)


def test_the_admin_refuses_it(admin_client: Client) -> None:
    user = UserFactory.create(username="ann", display_name="Ann")
    address = f"/admin/accounts/user/{user.pk}/change/"
    page = admin_client.post(address, {"username": "ann", "display_name": "Ann\u202enimdA"})
    assert page.status_code == 200
    assert "writing direction" in page.content.decode()
    assert User.objects.get(pk=user.pk).display_name == "Ann"


def test_an_account_whose_name_was_allowed_once_edits_the_rest() -> None:
    user = UserFactory.create(display_name="Ann\u202enimdA")
    edit_profile(user=user, bio="words")
    assert User.objects.get(pk=user.pk).bio == "words"


def test_a_name_stands_in_an_element_of_its_own_direction() -> None:
    user = UserFactory.build(username="sara", display_name="<שרה>")
    assert name_of(user) == "<bdi>&lt;שרה&gt;</bdi>"
    assert name_of(user, "/@sara") == '<a class="name" href="/@sara"><bdi>&lt;שרה&gt;</bdi></a>'
    assert full_name_of(user) == "<bdi>&lt;שרה&gt;</bdi> (@sara)"
