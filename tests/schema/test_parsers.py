"""Parsers can read their own output."""

import json
from ipaddress import ip_address

import pytest
from django.http import HttpRequest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError

from accounts.signing_in import grants, guard
from items.text import spans
from storage.events import Position, event_of
from web import proxy, rates
from web.hashtags import canonical_tag
from web.rest import MAX_POSITION, parse_id
from web.strict_json import DEPTH, parse_json

often = hypothesis_settings(max_examples=100, deadline=None, database=None)
digits = st.text("0123456789-_+. \u0663\uff11e\x00", max_size=25)
texts = digits | st.text() | st.text("@#＠＃a.:/-_'\"<>&;小\u0130\u2028\ud800\x00 wttps", max_size=60)  # noqa: RUF001 (as typed)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
)


@often
@given(texts)
@example(str(2**53))
def test_ids_and_positions(text: str) -> None:
    number = parse_id(text)
    assert number is None or (str(number) == text and 0 < number <= MAX_POSITION)
    for form in (text, text.encode(errors="replace")):
        try:
            position = Position.parse(form)
        except ValueError:
            continue
        assert Position.parse(str(position)) == position


@pytest.mark.slow
@often
@given(st.dictionaries(texts, values, max_size=5).map(json.dumps).map(str.encode) | st.binary(max_size=200))
@example(b'{"a":' * (DEPTH + 1) + b"1" + b"}" * (DEPTH + 1))
@example(b"[" * 100_000)
def test_bodies(data: bytes) -> None:
    try:
        value = parse_json(data)
    except ParseError:
        return
    assert parse_json(json.dumps(value).encode()) == value
    written = json.dumps(value, ensure_ascii=False)
    assert "\x00" not in written
    written.encode()


@pytest.mark.slow
@often
@given(texts)
def test_what_stands_in_a_text(text: str) -> None:
    assert "".join(span.text for span in spans(text)) == text
    for span in spans(text):
        assert span.kind != "link" or span.value.lower().startswith(("http://", "https://"))
    tag = canonical_tag(text)
    assert tag is None or canonical_tag(tag) == tag


@often
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_what_proves_who_one_is(text: str) -> None:
    assert grants.read_ticket(text) is None
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = text
    request.COOKIES[guard.COOKIE] = text
    assert guard._cookie_device(request, "ann") == ("", "")
    assert len(guard._canonical(text)) < 5_000
    assert isinstance(rates.address(request), str)
    for header in (text, f"for={text}", f'for="[{text}";proto={text}'):
        client, _ = proxy.parse(header)
        assert client == "" or ip_address(client)
    assert event_of({b"event": text.encode(errors="replace")}) is None or text.startswith("{")
