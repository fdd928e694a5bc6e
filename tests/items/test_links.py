from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone
from rest_framework.test import APIClient

from items.actions import publish
from items.links import check_link, is_link
from items.models import Item
from items.text import ContentError, check_content, links
from live import actions as live
from live.forms import SessionForm
from live.models import LiveSession
from tests.support.factories import UserFactory

GOOD = [
    "https://example.org",
    "HTTPS://EXAMPLE.ORG/Path",
    "https://example.org:8443/a/b?c=d&e=%20#f",
    "https://例子.中国/p/路径",
    "https://sub_domain.example.org/",
    "https://localhost/",
    "https://[2001:db8::1]:443/",
    "https://203.0.113.7/x",
    "https://example.org?q=微博",
]
BAD = [
    "https://",
    "https:///path",
    "https://?q",
    "https://a b",
    "https://example.org/a b",
    "https://example.org ",
    " https://example.org",
    "https://example.org\n",
    "https://exa\x00mple.org",
    "https://exa\x1fmple.org",
    "https://exa\x85mple.org",
    "https://exa\u202emple.org",
    "https://exa\u200bmple.org",
    "https://\u3164.example.org",
    "https://example.org/\u202egpj.exe",
    "https://example.org\\@evil.example",
    "https://example.org@evil.example",
    "https://user:secret@example.org",
    "https://.example.org",
    "https://example..org",
    "https://-example.org",
    "https://example",
    "https://example.org:99999",
    "https://example.org:x",
    "https://[::1",
    "https://[1.2.3]/",
    "https://" + "a" * 64 + ".org",
    "https://" + ".".join(["a" * 60] * 5),
    "http://example.org",
    "javascript:alert(1)",
    "//example.org",
    "example.org",
]


@pytest.mark.parametrize("address", GOOD)
def test_a_link_is_one_everywhere(address: str) -> None:
    assert is_link(address)
    check_link(address)
    check_content("link", {"url": address})
    assert links(f"see {address} there") == [address]


@pytest.mark.slow
@pytest.mark.parametrize("address", BAD)
def test_malformed_links_are_refused(address: str) -> None:
    assert not is_link(address)
    with pytest.raises(ValidationError):
        check_link(address)
    with pytest.raises(ContentError):
        check_content("link", {"url": address})


@pytest.mark.parametrize("address", BAD)
def test_what_a_text_links_to_is_a_link(address: str) -> None:
    assert all(is_link(found, is_secure=False) for found in links(f"see {address} there"))


@pytest.mark.django_db
def test_live_sessions_and_the_api_refuse_it_too(settings: Any) -> None:
    settings.RATE_SCALE = 1e6
    host = UserFactory.create()
    now = timezone.now()
    starts_at = now + timedelta(hours=1)
    api = APIClient()
    api.force_authenticate(host)
    for address in BAD:
        for field in ("url", "cover_url"):
            with pytest.raises(ValidationError) as refused:
                live.create(host=host, title="words", starts_at=starts_at, now=now, **{field: address})
            assert list(refused.value.message_dict) == [field], address
        assert api.post("/api/v1/items", {"type": "link", "content": {"url": address}}).status_code == 400, address
    assert not Item.objects.exists()
    assert not LiveSession.objects.exists()


@pytest.mark.django_db
def test_an_address_in_the_table_that_is_no_link_is_none_on_the_page() -> None:
    item = publish(sender=UserFactory.create(username="ann"), type="link", content={"url": "https://example.org/"})
    Item.objects.filter(pk=item.pk).update(content={"url": "https://example.org\\@evil.example"})
    page = APIClient().get(f"/items/{item.pk}").content.decode()
    assert 'class="link"' not in page


def test_the_form_of_a_session_completes_an_address() -> None:
    starts_at = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    fields = {"title": "words", "starts_at": starts_at, "zone": "UTC"}
    form = SessionForm(fields | {"url": "example.org/watch"}, now=timezone.now())
    assert form.is_valid()
    assert form.cleaned_data["url"] == "https://example.org/watch"
    assert "url" in SessionForm(fields | {"url": "https://a b"}, now=timezone.now()).errors
