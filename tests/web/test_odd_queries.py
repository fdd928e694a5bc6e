from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from discover import history_views
from items.actions import publish
from live import actions as live
from relations import views as relation_views
from tests.support.addresses import page_patterns
from tests.support.effort import EVERYTHING

pytestmark = pytest.mark.django_db

ODD = {
    "empty": "",
    "zero": "0",
    "negative": "-1",
    "beyond bigint": str(2**63),
    "huge": "9" * 400,
    "very huge": "9" * 5_000,
    "not a number": "NaN",
    "other digits": "١٢٣",
    "NUL": "a\x00b",
    "control": "\x01\x1b\x7f\x85",
    "line feeds": "a\r\nb",
    "lone byte": b"\xff\xfe",
    "surrogate": b"\xed\xa0\x80",
    "pairs": "1:2,3:,:4,x:y," + "9" * 40 + ":" + "9" * 40,
    "tsquery": "!&|():*<->",
    "sender": "from:",
    "markup": "<script>{{ x }}{% y %}",
    "long": "x" * 3_000,
}
BROKEN = ["=", "&&&", "%", "%zz=%zz", "a=" * 50]
VERBS = {
    "relate": [*relation_views.VERBS],
    "relate-tag": ["follow", "unfollow"],
    "history-change": [*history_views.VERBS],
}


@pytest.fixture
def addresses(reader: Any) -> list[str]:
    item = publish(sender=reader, content={"text": "words #tag"})
    now = timezone.now()
    session = live.create(host=reader, title="Bread", starts_at=now + timedelta(hours=1), now=now)
    known = {"item_id": item.pk, "session_id": session.pk, "username": "reader", "name": "tag", "token": "x"}
    known |= {"number": 1, "code": "41", "media_id": 1, "size": "preview", "first_id": 0, "logo_id": 1, "post_id": 1}
    known |= {"conversation_id": 1, "subscription_id": 1, "group": "follows", "reply_id": 1}
    known |= {"decision_id": 1, "right": "x"}
    known |= {"list_id": 1, "filter_id": 1, "import_id": 1, "invitation_id": 1, "kind": "follows", "key": "x"}
    found = []
    for pattern in page_patterns:
        if pattern.name in VERBS:
            choices: list[dict[str, Any]] = [{"verb": verb} for verb in VERBS[pattern.name]]
        elif pattern.name == "theme":
            choices = [{"code": "3457d5"}]
        else:
            choices = [{"verb": "end"}] if "verb" in pattern.pattern.converters else [{}]
        names = pattern.pattern.converters or pattern.pattern.regex.groupindex
        found += [reverse(pattern.name, kwargs={name: (known | choice)[name] for name in names}) for choice in choices]
    return found


def put_away(answer: Any) -> None:
    """A whole `close` would end the test's connection."""
    if answer.streaming:
        for close in answer._resource_closers:
            close()


SAMPLE = "q=words&since=1&since_id=1&at=1"
"""Pages then also read other parameters."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    read: set[str] = set()
    for verb in ("get", "getlist", "__getitem__"):
        known = getattr(QueryDict, verb)

        def note(self: QueryDict, name: str, *args: Any, known: Any = known) -> Any:
            read.add(name)
            return known(self, name, *args)

        monkeypatch.setattr(QueryDict, verb, note)
    return read


@pytest.mark.slow
@pytest.mark.parametrize("is_signed_in", [True, False], ids=["signed in", "stranger"])
def test_odd_queries_are_no_failure(
    client: Client, reader: Any, addresses: list[str], read: set[str], settings: Any, is_signed_in: bool
) -> None:
    """Every run tries a sixteenth."""
    settings.RATES = dict.fromkeys(settings.RATES, "1000000/hour")
    client.raise_request_exception = False
    if is_signed_in:
        client.force_login(reader)
    failed = []
    for number, address in enumerate(addresses):
        read.clear()
        response = client.get(f"{address}?{SAMPLE}")
        put_away(response)
        queries = [urlencode({name: value}) for name in sorted(read) for value in ODD.values()] + BROKEN
        queries += [f"{name}=1&{name}=2" for name in sorted(read)]
        if response.status_code != 200:  # the view ends before it reads its parameters
            queries = queries[::15]
        elif not EVERYTHING:
            queries = queries[number % 16 :: 16]
        for place, query in enumerate(queries):
            part: Any = {"HTTP_HX_REQUEST": "true"} if place % 2 else {}
            answer = client.get(f"{address}?{query}", **part)
            put_away(answer)
            if answer.status_code >= 500:
                failed.append((address, query[:100], answer.status_code))
    assert failed == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["\x00", "\u202e", "a\nb", "9" * 400, "%", "\\", "..", "x" * 300])
def test_odd_paths_are_no_failure(client: Client, reader: Any, addresses: list[str], name: str) -> None:
    client.raise_request_exception = False
    client.force_login(reader)
    odd = quote(name, safe="")
    paths = [f"/@{odd}", f"/@{odd}/followers", f"/tags/{odd}", f"/items/{odd}", f"/live/{odd}", f"/live/1/{odd}"]
    assert [path for path in paths if client.get(path).status_code >= 500] == []


FORMS = ["/items/{item}/like", "/items/{item}/repost", "/@reader/follow", "/position", "/logout", "/language"]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_address_of_a_form_opens_a_page_that_says_so(client: Client, reader: Any, form: str) -> None:
    client.force_login(reader)
    item = publish(sender=reader, content={"text": "words"})
    response = client.get(form.format(item=item.pk))
    assert response.status_code == 405
    assert response["Allow"]
    page = response.content.decode()
    assert "You can't open this page directly" in page
    assert 'href="/"' in page


def test_the_api_says_a_wrong_method_in_json(client: Client) -> None:
    response = client.delete("/api/v1/users")
    assert response.status_code in {401, 405}
    assert response["Content-Type"] == "application/json"
