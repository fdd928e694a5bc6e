import msgspec
import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.actions import delete_account, edit_profile
from accounts.export import _account
from accounts.models import User
from community.archives.extras import _Actor, _pairs
from moderation.models import WordRule
from tests.support.api import API, client_of
from tests.support.clients import Caller
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

SITE = {"name": "Site", "value": "https://example.org/?a=1&b=2"}


def test_they_are_shown_with_their_links(reader: User, client: Client) -> None:
    edit_profile(user=reader, fields=[("Site", SITE["value"]), (" <b>  too ", "@reader"), ("", " ")])
    page = client.get("/@reader").content.decode()
    assert 'href="https://example.org/?a=1&amp;b=2" rel="nofollow noopener ugc"' in page
    assert "<bdi>&lt;b&gt; too</bdi>" in page
    assert '<a href="/@reader">@reader</a>' in page
    assert page.count("<dt>") == 2
    fields = client.get(f"{API}/users/reader").json()["fields"]
    assert fields == [SITE, {"name": "<b> too", "value": "@reader"}]


@pytest.mark.parametrize(
    "pairs",
    [[("a", "b")] * 5, [("a", "")], [("", "b")], [("a" * 51, "b")], [("a", "b" * 256)]],
)
def test_what_is_no_field_is_refused_and_changes_nothing(reader: User, pairs: list[tuple[str, str]]) -> None:
    edit_profile(user=reader, fields=[("Site", SITE["value"])])
    with pytest.raises(ValidationError) as refusal:
        edit_profile(user=reader, fields=pairs)
    assert list(refusal.value.message_dict) == ["fields"]
    reader.refresh_from_db()
    assert reader.profile_fields == [SITE]


def test_words_that_are_not_allowed_are_refused(reader: User, client: Client) -> None:
    WordRule.objects.create(text="forbidden")
    client.force_login(reader)
    form = {"label_1": "Job", "text_1": "forbidden", "display_name": "Kept", "bio": ""}
    page = client.post("/settings/profile", form)
    assert page.status_code == 422
    assert "This has words or links" in page.content.decode()
    reader.refresh_from_db()
    assert (reader.profile_fields, reader.display_name) == ([], "")


def test_the_page_of_the_settings(reader: User, client: Client) -> None:
    client.force_login(reader)
    form = {"label_2": "Site", "text_2": SITE["value"], "display_name": "", "bio": ""}
    assert client.post("/settings/profile", form).status_code == 302
    reader.refresh_from_db()
    assert reader.profile_fields == [SITE]
    page = client.get("/settings/profile").content.decode()
    assert 'name="label_1" value="Site"' in page
    assert client.post("/settings/profile", form | {"label_1": "alone"}).status_code == 422
    assert client.post("/settings/profile", {"display_name": "", "bio": ""}).status_code == 302
    reader.refresh_from_db()
    assert reader.profile_fields == []


def test_by_the_api(reader: User) -> None:
    api = client_of(reader)
    answer = api.patch(f"{API}/users/me", {"fields": [SITE]}, format="json")
    assert (answer.status_code, answer.json()["fields"]) == (200, [SITE])
    for bad in ([SITE] * 5, [{"name": "a"}], [SITE | {"more": "b"}], "x", [{"name": "", "value": "b"}], [None]):
        assert api.patch(f"{API}/users/me", {"fields": bad}, format="json").status_code == 400, bad
    assert api.patch(f"{API}/users/me", {"bio": "more"}, format="json").json()["fields"] == [SITE]
    assert api.patch(f"{API}/users/me", {"fields": []}, format="json").json()["fields"] == []


def test_by_apps(reader: User) -> None:
    caller = Caller(reader)
    sent = {"fields_attributes": {"0": SITE, "1": {"name": "", "value": ""}}}
    account = caller.client.patch(
        "/api/v1/accounts/update_credentials", sent, content_type="application/json", **caller.headers
    ).json()
    assert account["source"]["fields"] == [SITE | {"verified_at": None}]
    (field,) = account["fields"]
    assert field["value"].startswith('<a href="https://example.org/?a=1&amp;b=2"')
    assert caller.get(f"v1/accounts/{reader.pk}")["fields"] == [field]


def test_they_are_in_the_export_and_gone_with_the_account(reader: User) -> None:
    UserFactory(is_superuser=True)
    edit_profile(user=reader, fields=[("Site", SITE["value"])])
    (row,) = _account(reader).rows
    assert row.fields == [SITE]
    delete_account(user=reader)
    reader.refresh_from_db()
    assert reader.profile_fields == []


def test_an_archive_brings_those_that_fit() -> None:
    attachments = [
        {"type": "PropertyValue", "name": "Site", "value": '<a href="https://example.org">example.org</a>'},
        {"type": "PropertyValue", "name": 5, "value": "x"},
        "nothing",
        {"name": "Long", "value": "<p>" + "x" * 300},
        *[{"name": f"n{number}", "value": "v"} for number in range(5)],
    ]
    found = _pairs(msgspec.convert({"attachment": attachments}, _Actor))
    assert [name for name, _ in found] == ["Site", "Long", "n0", "n1"]
    assert "example.org" in found[0][1]
    assert len(found[1][1]) == 255
    assert _pairs(_Actor()) == _pairs(_Actor(attachment={"a": 1})) == []
