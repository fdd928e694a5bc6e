import re
from typing import Any

import pytest
from django.utils import translation

from accounts.models import User
from moderation.models import Decision, Verb
from moderation.sentences import changes, explain_reason, sentence, why

ITEM, SESSION, BY = {"item_id": 5}, {"session_id": 6}, "by @sam"
ON, OFF = {"text": "ham", "is_enabled": True}, {"text": "ham", "is_enabled": False}
SENTENCES: list[tuple[Verb, dict[str, Any], str]] = [
    (Verb.HOLD, ITEM, f"held post 5 {BY} for review"),
    (Verb.OPEN, SESSION, f"opened a case about live session 6 {BY}"),
    (Verb.APPROVE, ITEM, f"approved post 5 {BY}"),
    (Verb.REJECT, ITEM, f"rejected post 5 {BY}"),
    (Verb.APPROVE, {}, "approved the account @sam"),
    (Verb.REJECT, {}, "rejected the account @sam"),
    (Verb.END, SESSION, f"ended live session 6 {BY}"),
    (Verb.WARN, {}, "warned @sam"),
    (Verb.WARN, ITEM, "warned @sam about post 5"),
    (Verb.BAN, {}, "suspended @sam"),
    (Verb.UNBAN, {}, "lifted the suspension of @sam"),
    (Verb.LIST, {"after": {"list": "black"}}, "set @sam to always review"),
    (Verb.LIST, {"after": {"list": "ban"}}, "suspended @sam"),
    (Verb.UNLIST, {"before": {"list": "white"}}, "no longer trusts @sam"),
    (Verb.WORD, {"note": "ham", "after": ON}, "added the word rule “ham”"),
    (Verb.WORD, {"after": {"texts": ["ham"]}}, "added 1 word rule"),
    (Verb.WORD, {"after": {"texts": ["ham", "spam"]}}, "added 2 word rules"),
    (Verb.WORD, {"note": "ham", "before": ON, "after": OFF}, "disabled the word rule “ham”"),
    (Verb.WORD, {"note": "ham", "before": OFF, "after": ON}, "enabled the word rule “ham”"),
    (Verb.WORD, {"note": "ham", "before": OFF, "after": OFF}, "changed the word rule “ham”"),
    (Verb.UNWORD, {"note": "ham"}, "removed the word rule “ham”"),
    (Verb.HIDE, ITEM, f"hid pictures in post 5 {BY}"),
    (Verb.SHOW, ITEM, f"showed pictures in post 5 {BY} again"),
    (Verb.BLOCK, {"note": "a flag"}, "saved the blocked picture “a flag”"),
    (Verb.UNBLOCK, {"note": "a flag"}, "unblocked the picture “a flag”"),
    (Verb.UNCARD, ITEM | {"note": "spam"}, "removed the link preview of post 5"),
    (Verb.UNCARD, {"after": {"link": "https://far.example/"}}, "removed the link preview of https://far.example/"),
    (Verb.READ, ITEM | {"note": "7"}, f"read post 5 {BY}"),
    (Verb.GRANT, ITEM, "accepted an appeal by @sam"),
    (Verb.DENY, {}, "rejected an appeal by @sam"),
    (Verb.REFUSE, {"note": "far.example"}, "turned off previews of “far.example”"),
    (Verb.ACCEPT, {"note": "far.example"}, "turned previews of “far.example” back on"),
]


def decision(verb: Verb, **facts: Any) -> Decision:
    return Decision(verb=verb, by=User(pk=1, username="mo"), user=User(pk=2, username="sam"), **facts)


@pytest.mark.parametrize(("verb", "facts", "said"), SENTENCES)
def test_a_decision_is_a_sentence(verb: Verb, facts: dict[str, Any], said: str) -> None:
    assert re.sub(r"<[^>]+>", "", sentence(decision(verb, **facts))) == f"@mo {said}"


def test_every_kind_of_decision_has_a_sentence() -> None:
    assert {verb for verb, _facts, _said in SENTENCES} == set(Verb)


def test_a_decision_of_a_newer_version_is_told_by_its_kind() -> None:
    newer = Decision(verb="exile", by=User(pk=1, username="mo"))
    assert sentence(newer) == "exile"


def test_the_note_is_why_unless_it_names_the_rule() -> None:
    assert why(decision(Verb.REJECT, note="rude")) == "rude"
    assert why(decision(Verb.WORD, note="ham", after=ON)) == ""
    assert why(decision(Verb.READ, note="7")) == "Case 7"
    assert why(decision(Verb.READ)) == ""
    held = Decision(verb=Verb.HOLD, note="reports: 5 readers; words: ham")
    assert why(held) == "reports from 5 readers; words: ham"


def test_changes_are_told_by_fact() -> None:
    told = changes(decision(Verb.WORD, before=ON, after=OFF | {"whole": True}))
    assert told.splitlines() == ["whole words only: yes", "enabled: yes → no"]
    many = changes(decision(Verb.WORD, after={"texts": ["ham", "spam"]}))
    assert many == "words: ham, spam"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("rate: 20 items in 10 minutes", "more than 20 posts in 10 minutes"),
        ("same: 3 times in an hour", "the same text more than 3 times in an hour"),
        ("link: account younger than 2 days", "a link from an account younger than 2 days"),
        ("reports: 5 readers", "reports from 5 readers"),
        ("rate: of a newer version", "rate: of a newer version"),
        ("unheard of", "unheard of"),
    ],
)
def test_reasons_with_numbers(reason: str, said: str) -> None:
    assert explain_reason(reason) == said


def test_reasons_are_in_the_readers_language() -> None:
    with translation.override("zh-hans"):
        assert "20" in explain_reason("rate: 20 items in 10 minutes")
        assert "items" not in explain_reason("rate: 20 items in 10 minutes")
