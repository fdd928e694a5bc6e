from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from accounts.actions import edit_preferences
from accounts.models import QuotableBy, User
from items.actions import (
    AudienceError,
    RepostError,
    change_quotable,
    change_visibility,
    delete,
    edit,
    hold,
    publish,
    publish_past,
    repost,
    restore,
    revoke_quote,
)
from items.bodies import Quote
from items.counts import fold
from items.filters.filters import create
from items.hydrate import hydrate
from items.idempotency import IdempotencyConflictError
from items.models import LISTED, Item, ItemCounts, Visibility
from items.profiles.profile import find_item
from items.quotes import NotQuotableError, quotes_page
from notifications.feed import notifications_page
from relations.actions import block, follow, mute, unblock, unmute
from tests.support.factories import UserFactory, say
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def carol() -> User:
    return UserFactory.create(username="carol")


def quote(sender: User, item: Item, text: str = "my words", **fields: Any) -> Item:
    return publish(sender=sender, content={"text": text}, quote_of=item, **fields)


def inside(item: Item, reader: Any) -> Quote:
    shown = find_item(item.pk, reader)
    assert shown is not None
    assert shown.quote is not None
    return shown.quote


def state(item: Item, reader: Any) -> str:
    found = inside(item, reader)
    assert (found.item is not None) == (found.state == "accepted")
    return found.state


def test_a_quote_shows_the_item_inside(ann: User, bob: User, carol: User) -> None:
    said = say(ann, "look at this")
    quoting = quote(bob, said)
    for reader in (ann, bob, carol, AnonymousUser()):
        found = inside(quoting, reader)
        assert (found.id, found.state) == (str(said.pk), "accepted")
        assert found.item is not None
        assert (found.item.text, found.item.sender.username) == ("look at this", "ann")


def test_a_quote_of_a_repost_is_one_of_the_original(ann: User, bob: User) -> None:
    said = say(ann)
    again, _ = repost(sender=bob, item=said)
    assert quote(bob, again).quote_of_id == said.pk


def test_a_repost_of_a_quote_shows_it(ann: User, bob: User, carol: User) -> None:
    again, _ = repost(sender=carol, item=quote(bob, say(ann, "first")))
    shown = hydrate([again.pk], bob)[0]
    assert shown.quote is None
    assert shown.shown.quote
    assert shown.shown.quote.item
    assert shown.shown.quote.item.text == "first"


def test_one_level_is_shown(ann: User, bob: User, carol: User) -> None:
    first = say(ann, "one")
    second = quote(bob, first, "two")
    third = quote(carol, second, "three")
    fourth = quote(ann, third, "four")
    found = inside(fourth, bob).item
    assert found is not None
    assert found.text == "three"
    assert found.quote == Quote(str(second.pk), None, "accepted")
    revoke_quote(quote=third)
    inner = inside(fourth, bob).item
    assert inner is not None
    assert inner.quote == Quote(str(second.pk), None, "revoked")


@pytest.mark.parametrize(
    ("quotable_by", "may_fan", "may_stranger"),
    [(QuotableBy.EVERYONE, True, True), (QuotableBy.FOLLOWERS, True, False), (QuotableBy.NOBODY, False, False)],
)
@pytest.mark.parametrize("by_default", [True, False])
def test_the_sender_chooses_who_quotes(
    ann: User, bob: User, carol: User, quotable_by: str, may_fan: bool, may_stranger: bool, by_default: bool
) -> None:
    follow(follower=bob, followee=ann)
    if by_default:
        edit_preferences(user=ann, quotable_by=quotable_by)
    said = say(ann, quotable_by=None if by_default else quotable_by)
    assert said.quotable_by == quotable_by
    assert quote(ann, said).quote_of_id == said.pk
    for user, may in ((bob, may_fan), (carol, may_stranger)):
        if may:
            assert quote(user, said).quote_of_id == said.pk
        else:
            with pytest.raises(NotQuotableError):
                quote(user, said)


@pytest.mark.parametrize("visibility", [Visibility.FOLLOWERS, Visibility.MUTUALS, Visibility.SELF])
def test_what_is_not_for_all_is_quoted_by_its_sender_alone(ann: User, bob: User, visibility: str) -> None:
    follow(follower=bob, followee=ann)
    follow(follower=ann, followee=bob)
    said = say(ann, visibility=visibility)
    with pytest.raises(NotQuotableError):
        quote(bob, said)
    for audience in Visibility.values:
        may = audience in LISTED[LISTED.index(visibility) :]
        past = {"content": {"text": "then"}, "written_at": datetime(2020, 1, 1, tzinfo=UTC)}
        if may:
            assert quote(ann, said, "@bob", visibility=audience).quote_of_id == said.pk
            assert publish_past(sender=ann, visibility=audience, quote_of=said, **past).quote_of_id == said.pk
            continue
        with pytest.raises(NotQuotableError, match="fewer people"):
            quote(ann, said, "@bob", visibility=audience)
        if audience != Visibility.MENTIONED:
            with pytest.raises(NotQuotableError):
                publish_past(sender=ann, visibility=audience, quote_of=said, **past)


@pytest.mark.parametrize("visibility", Visibility.values)
def test_nobody_quotes_a_private_mention(ann: User, bob: User, visibility: str) -> None:
    said = say(ann, "@bob", visibility=Visibility.MENTIONED)
    for user in (ann, bob):
        with pytest.raises(NotQuotableError):
            quote(user, said, "@bob", visibility=visibility)


def test_a_reply_in_a_thread_that_few_see_is_quoted_for_them_alone(ann: User, bob: User) -> None:
    follow(follower=bob, followee=ann)
    root = say(ann, visibility=Visibility.FOLLOWERS)
    own, answer = say(ann, reply_to=root), say(bob, reply_to=root)
    for user, item in ((ann, own), (ann, answer), (bob, own), (bob, answer)):
        with pytest.raises(NotQuotableError):
            quote(user, item)
    assert quote(ann, own, visibility=Visibility.FOLLOWERS).quote_of_id == own.pk
    with pytest.raises(NotQuotableError):
        quote(bob, answer, visibility=Visibility.FOLLOWERS)


def test_a_quote_gets_no_more_readers_than_what_it_quotes(ann: User, bob: User) -> None:
    said = say(ann, visibility=Visibility.MUTUALS)
    quoting = quote(ann, said, visibility=Visibility.SELF)
    assert change_visibility(item=quoting, visibility=Visibility.MUTUALS)
    with pytest.raises(AudienceError, match="fewer people"):
        change_visibility(item=quoting, visibility=Visibility.PUBLIC)
    theirs = quote(bob, open_to_all := say(ann), visibility=Visibility.SELF)
    change_visibility(item=open_to_all, visibility=Visibility.SELF)
    with pytest.raises(AudienceError):
        change_visibility(item=theirs, visibility=Visibility.PUBLIC)
    revoke_quote(quote=theirs)
    assert change_visibility(item=theirs, visibility=Visibility.PUBLIC)


def test_what_is_not_published_is_not_quoted(ann: User) -> None:
    said = say(ann)
    hold(item=said, reasons=["test"])
    with pytest.raises(NotQuotableError):
        quote(ann, Item.objects.get(pk=said.pk))


def test_a_choice_holds_for_later_quotes_alone(ann: User, bob: User) -> None:
    said = say(ann)
    quoting = quote(bob, said)
    change_quotable(item=said, quotable_by=QuotableBy.NOBODY)
    assert state(quoting, bob) == "accepted"
    with pytest.raises(NotQuotableError):
        quote(bob, Item.objects.get(pk=said.pk))
    with pytest.raises(RepostError):
        change_quotable(item=repost(sender=bob, item=said)[0], quotable_by=QuotableBy.NOBODY)


def test_the_same_call_under_a_key_publishes_once(ann: User, bob: User) -> None:
    said = say(ann)
    first = quote(bob, said, idempotency_key="k")
    change_quotable(item=said, quotable_by=QuotableBy.NOBODY)
    assert quote(bob, Item.objects.get(pk=said.pk), idempotency_key="k").pk == first.pk
    with pytest.raises(IdempotencyConflictError):
        quote(bob, say(ann), idempotency_key="k")


def test_a_narrowed_item_is_seen_by_whom_it_is_for(ann: User, bob: User, carol: User) -> None:
    follow(follower=carol, followee=ann)
    said = say(ann)
    quoting = quote(bob, said)
    change_visibility(item=said, visibility=Visibility.FOLLOWERS)
    assert [state(quoting, one) for one in (ann, bob, carol, AnonymousUser())] == [
        "accepted", "unauthorized", "accepted", "unauthorized",
    ]  # fmt: skip
    change_visibility(item=said, visibility=Visibility.PUBLIC)
    assert state(quoting, AnonymousUser()) == "accepted"


def test_what_followers_see_is_widened_and_narrowed_inside(ann: User, bob: User, carol: User) -> None:
    follow(follower=bob, followee=ann)
    said = say(ann, "for you", visibility=Visibility.FOLLOWERS)
    quoting = quote(ann, said, visibility=Visibility.FOLLOWERS)
    change_visibility(item=said, visibility=Visibility.PUBLIC)
    change_visibility(item=quoting, visibility=Visibility.PUBLIC)
    assert state(quoting, carol) == "accepted"
    change_visibility(item=said, visibility=Visibility.SELF)
    assert (state(quoting, ann), state(quoting, bob), state(quoting, carol)) == (
        "accepted", "unauthorized", "unauthorized",
    )  # fmt: skip


def test_a_deleted_item_and_one_in_review_are_gone_inside(ann: User, bob: User) -> None:
    said, other = say(ann), say(ann)
    gone, held = quote(bob, said), quote(bob, other)
    delete(item=said)
    hold(item=other, reasons=["test"])
    for reader in (ann, bob, AnonymousUser()):
        assert (state(gone, reader), state(held, reader)) == ("deleted", "unauthorized")
    restore(item=said)
    assert state(gone, AnonymousUser()) == "accepted"


def test_blocks_and_mutes_hide_what_is_quoted(ann: User, bob: User, carol: User) -> None:
    quoting = quote(bob, say(ann))
    for begin, end, one, other in (
        (block, unblock, carol, ann),
        (block, unblock, ann, carol),
        (mute, unmute, carol, ann),
    ):
        names = ("blocker", "blocked") if begin is block else ("muter", "muted")
        begin(**dict(zip(names, (one, other), strict=True)))
        assert state(quoting, carol) == "unauthorized"
        end(**dict(zip(names, (one, other), strict=True)))
        assert state(quoting, carol) == "accepted"


def test_whoever_blocks_a_quoter_is_shown_in_their_quotes_no_more(ann: User, bob: User, carol: User) -> None:
    quoting = quote(bob, say(ann))
    block(blocker=ann, blocked=bob)
    assert find_item(quoting.pk, ann) is None
    assert [state(quoting, one) for one in (bob, carol, AnonymousUser())] == ["unauthorized"] * 3


def test_a_suspended_sender_is_not_shown_inside(ann: User, bob: User) -> None:
    quoting = quote(bob, say(ann))
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert state(quoting, bob) == "unauthorized"


def test_a_reply_is_shown_inside_while_its_thread_is(ann: User, bob: User, carol: User) -> None:
    root = say(ann)
    quoting = quote(carol, say(bob, reply_to=root))
    assert state(quoting, AnonymousUser()) == "accepted"
    change_visibility(item=root, visibility=Visibility.SELF)
    assert [state(quoting, one) for one in (ann, bob, carol)] == ["accepted", "accepted", "unauthorized"]


def test_an_edit_of_the_quoted_is_shown(ann: User, bob: User) -> None:
    said = say(ann, "before")
    quoting = quote(bob, said)
    edit(item=said, content={"text": "after"})
    found = inside(quoting, bob).item
    assert found is not None
    assert found.text == "after"


def test_a_quote_that_is_taken_off_stays_without_the_item(ann: User, bob: User) -> None:
    said = say(ann)
    quoting = quote(bob, said, "still here")
    assert revoke_quote(quote=quoting)
    assert not revoke_quote(quote=quoting)
    for reader in (ann, bob, AnonymousUser()):
        assert state(quoting, reader) == "revoked"
    assert hydrate([quoting.pk], bob)[0].text == "still here"
    assert hydrate([said.pk], bob)[0].counts.quotes == 0
    assert not quotes_page(hydrate([said.pk], bob)[0], bob).items
    assert not revoke_quote(quote=said)


def test_public_quotes_are_counted(ann: User, bob: User, carol: User) -> None:
    said = say(ann)
    quotes = [quote(bob, said), quote(bob, said), quote(carol, said, reply_to=said), quote(ann, said)]
    quote(ann, said, visibility=Visibility.FOLLOWERS)

    def count() -> int:
        fold()
        folded = ItemCounts.objects.filter(item=said).values_list("quotes", flat=True).first() or 0
        shown = hydrate([said.pk], bob)[0].counts.quotes
        assert shown == folded
        return folded

    assert count() == 4
    delete(item=quotes[0])
    change_visibility(item=quotes[1], visibility=Visibility.FOLLOWERS)
    revoke_quote(quote=quotes[2])
    assert count() == 1
    assert hydrate([said.pk], bob)[0].counts.replies == 1
    restore(item=quotes[0])
    change_visibility(item=quotes[1], visibility=Visibility.PUBLIC)
    delete(item=quotes[2])
    restore(item=quotes[2])
    assert count() == 3


def test_quotes_are_listed_as_far_as_the_reader_sees_them(ann: User, bob: User, carol: User) -> None:
    said = say(ann)
    first, second, third = quote(bob, said), quote(ann, said, visibility=Visibility.FOLLOWERS), quote(carol, said)
    body = hydrate([said.pk], ann)[0]
    assert [item.id for item in quotes_page(body, ann).items] == [str(one.pk) for one in (third, second, first)]
    assert [item.id for item in quotes_page(body, bob).items] == [str(one.pk) for one in (third, first)]
    block(blocker=carol, blocked=bob)
    assert [item.id for item in quotes_page(body, bob).items] == [str(first.pk)]
    page = quotes_page(body, ann, limit=1)
    assert (page.last_id, page.has_more) == (str(third.pk), True)
    assert [item.id for item in quotes_page(body, ann, last_id=third.pk).items] == [str(second.pk), str(first.pk)]


def test_a_page_of_quotes_costs_one_statement_more(ann: User, bob: User) -> None:
    said = say(ann)
    plain = [say(bob).pk for _ in range(3)]
    quotes = [quote(bob, said).pk for _ in range(3)]
    with statements() as without:
        hydrate(plain, ann)
    with statements() as beside:
        hydrate([*plain, *quotes], ann)
    assert (len(without), len(beside)) == (1, 2)


def told(user: User) -> list[tuple[str, str]]:
    return [(entry.kind, entry.item.id) for entry in notifications_page(user).items if entry.item]


def test_the_quoted_sender_is_told_once(ann: User, bob: User, carol: User) -> None:
    said = say(ann, "hello @carol")
    quoting = quote(bob, said, "see @ann")
    edit(item=quoting, content={"text": "see @ann again"})
    assert told(ann) == [("quote", str(quoting.pk))]
    assert told(carol) == [("mention", str(said.pk))]
    answer = quote(bob, said, reply_to=said)
    assert told(ann)[0] == ("reply", str(answer.pk))
    quote(ann, said)
    assert len(told(ann)) == 2


def test_a_quote_for_others_is_not_told(ann: User, bob: User) -> None:
    quote(bob, say(ann), visibility=Visibility.FOLLOWERS)
    assert told(ann) == []


def test_a_filter_finds_what_is_quoted(ann: User, bob: User, carol: User) -> None:
    said = say(ann, "a spoiler")
    quoting = quote(bob, said, "look")
    create(owner=carol, phrase="spoiler", whole_word=True)
    create(owner=ann, phrase="spoiler", whole_word=True)
    carol, ann = User.objects.get(pk=carol.pk), User.objects.get(pk=ann.pk)
    assert hydrate([quoting.pk], carol)[0].filtered == ["spoiler"]
    assert hydrate([quoting.pk], ann)[0].filtered == []
    mute(muter=carol, muted=ann)
    assert hydrate([quoting.pk], carol)[0].filtered == []
