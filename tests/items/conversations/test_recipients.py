"""A private mention is for those mentioned at publication, and for nobody later."""

from typing import Any

import pytest

from accounts.models import User
from items import actions as items
from items.conversations import conversations
from items.conversations.recipients import StrangersError
from items.models import Correspondent, Item, ItemDocument, ItemTag, Participant, Visibility
from items.text import ContentError
from relations import actions as relations
from tests.support.factories import UserFactory, say
from timeline.models import Delivery

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> dict[str, User]:
    return {name: UserFactory(username=name) for name in ("ann", "bob", "cid", "dan")}


def tell(sender: User, text: str, **fields: Any) -> Item:
    return say(sender, text, visibility=Visibility.MENTIONED, **fields)


def readers(item: Item) -> set[str]:
    every = User.objects.all()
    return {one.username for one in every if Item.objects.visible_to(one).filter(pk=item.pk).exists()}


def requests_of(user: User) -> list[int]:
    return [row.conversation_id for row in Participant.objects.filter(user=user, is_request=True)]


def test_it_is_for_its_sender_and_whom_it_mentions(people: dict[str, User]) -> None:
    relations.follow(follower=people["dan"], followee=people["ann"])
    item = tell(people["ann"], "@bob @CID hello @nobody")
    assert readers(item) == {"ann", "bob", "cid"}
    assert {row.user.username for row in item.participants.select_related("user")} == {"ann", "bob", "cid"}


@pytest.mark.parametrize("text", ["hello", "hello @nobody", "hello @ann", "hello bob@example.org"])
def test_it_needs_a_mention_of_somebody(people: dict[str, User], text: str) -> None:
    with pytest.raises(ContentError, match="Mention someone") as refused:
        tell(people["ann"], text)
    assert refused.value.field == "visibility"
    assert not Item.objects.exists()


def test_it_mentions_twenty_people_at_most(people: dict[str, User]) -> None:
    with pytest.raises(ContentError, match="at most 20"):
        tell(people["ann"], " ".join(f"@user{number}x" for number in range(21)))


def test_it_is_found_by_nothing_and_delivered_to_nobody(people: dict[str, User]) -> None:
    item = tell(people["ann"], "@bob words #tag")
    items.edit(item=item, content={"text": "@bob other words #other"})
    assert not ItemDocument.objects.exists()
    assert not ItemTag.objects.exists()
    assert not Delivery.objects.exists()


def test_whom_an_edit_mentions_does_not_see_it(people: dict[str, User]) -> None:
    item = tell(people["ann"], "@bob hello")
    items.edit(item=item, content={"text": "@cid hello"})
    assert readers(item) == {"ann", "bob"}


@pytest.mark.parametrize("other", [one for one in Visibility.values if one != Visibility.MENTIONED])
def test_its_audience_stays(people: dict[str, User], other: str) -> None:
    private, open_one = tell(people["ann"], "@bob hello"), say(people["ann"], "@bob", visibility=other)
    with pytest.raises(items.AudienceError):
        items.change_visibility(item=private, visibility=other)
    with pytest.raises(items.AudienceError):
        items.change_visibility(item=open_one, visibility=Visibility.MENTIONED)
    assert readers(private) == {"ann", "bob"}


def test_it_is_not_reposted(people: dict[str, User]) -> None:
    item = tell(people["ann"], "@bob hello")
    for sender in (people["ann"], people["bob"]):
        with pytest.raises(items.AudienceError):
            items.repost(sender=sender, item=item)


@pytest.mark.parametrize("asked", Visibility.values)
def test_a_reply_has_the_same_people(people: dict[str, User], asked: str) -> None:
    first = tell(people["ann"], "@bob @cid hello")
    reply = say(people["bob"], "I fetch @dan", reply_to=first, visibility=asked)
    again = say(people["cid"], "yes", reply_to=reply, visibility=asked)
    for item in (reply, again):
        assert item.visibility == Visibility.MENTIONED
        assert item.conversation_id == first.pk
        assert readers(item) == {"ann", "bob", "cid"}


def test_a_stranger_to_a_conversation_does_not_reply(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob hello")
    with pytest.raises(ContentError, match="not in this conversation") as refused:
        say(people["dan"], "@ann @bob me too", reply_to=first)
    assert refused.value.field == "reply_to"
    Participant.objects.filter(user=people["bob"]).delete()
    with pytest.raises(ContentError, match="not in this conversation"):
        say(people["bob"], "still there?", reply_to=first)


def test_a_private_reply_under_a_public_post_is_for_whom_it_mentions(people: dict[str, User]) -> None:
    post = say(people["dan"], "a public post")
    reply = tell(people["ann"], "@bob look at that", reply_to=post)
    answer = say(people["bob"], "oh", reply_to=reply)
    assert readers(reply) == readers(answer) == {"ann", "bob"}
    assert answer.conversation_id == reply.pk
    assert answer.root_id == post.pk
    items.delete(item=post)
    assert readers(answer) == {"ann", "bob"}


def test_the_others_keep_theirs_when_the_first_message_goes(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob hello")
    reply = say(people["bob"], "hi", reply_to=first)
    items.delete(item=first)
    assert readers(reply) == {"ann", "bob"}


@pytest.mark.parametrize("is_blocker", [True, False])
def test_a_message_does_not_pass_a_block(people: dict[str, User], is_blocker: bool) -> None:
    ann, bob = people["ann"], people["bob"]
    relations.block(blocker=bob if is_blocker else ann, blocked=ann if is_blocker else bob)
    with pytest.raises(ContentError, match="Mention someone"):
        tell(ann, "@bob hello")
    assert readers(tell(ann, "@bob @cid hello")) == {"ann", "cid"}


def test_a_later_block_hides_what_was_and_what_comes(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob @cid hello")
    relations.block(blocker=people["bob"], blocked=people["ann"])
    later = say(people["ann"], "more", reply_to=first)
    of_cid = say(people["cid"], "and I", reply_to=first)
    assert readers(first) == readers(later) == {"ann", "cid"}
    assert readers(of_cid) == {"ann", "bob", "cid"}
    assert Participant.objects.get(user=people["bob"]).last == of_cid.pk


def test_a_mute_leaves_a_message_out_of_the_list(people: dict[str, User]) -> None:
    relations.mute(muter=people["bob"], muted=people["ann"])
    first = tell(people["ann"], "@bob hello")
    assert Participant.objects.get(user=people["bob"]).last is None
    say(people["ann"], "more", reply_to=first)
    assert Participant.objects.get(user=people["bob"]).last is None


def test_a_strangers_message_is_a_request_until_it_is_answered(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob hello")
    assert requests_of(people["bob"]) == [first.pk]
    assert requests_of(people["ann"]) == []
    say(people["ann"], "are you there?", reply_to=first)
    assert requests_of(people["bob"]) == [first.pk]
    say(people["bob"], "yes", reply_to=first)
    assert requests_of(people["bob"]) == []
    tell(people["ann"], "@bob another thing")
    assert requests_of(people["bob"]) == []


def test_whom_one_follows_or_wrote_to_is_no_stranger(people: dict[str, User]) -> None:
    relations.follow(follower=people["bob"], followee=people["ann"])
    tell(people["ann"], "@bob hello")
    tell(people["cid"], "@dan hello")
    tell(people["dan"], "@cid hello, too")
    assert requests_of(people["bob"]) == requests_of(people["cid"]) == []


def test_a_friends_message_takes_a_conversation_out_of_the_requests(people: dict[str, User]) -> None:
    relations.follow(follower=people["bob"], followee=people["cid"])
    first = tell(people["ann"], "@bob @cid hello")
    assert requests_of(people["bob"]) == [first.pk]
    say(people["cid"], "I am here", reply_to=first)
    assert requests_of(people["bob"]) == []


def test_who_takes_no_requests_is_written_to_by_no_stranger(people: dict[str, User]) -> None:
    User.objects.filter(pk=people["bob"].pk).update(takes_requests=False)
    with pytest.raises(ContentError, match="@bob only accepts private mentions"):
        tell(people["ann"], "@bob @cid hello")
    assert not Participant.objects.exists()
    relations.follow(follower=people["bob"], followee=people["ann"])
    assert readers(tell(people["ann"], "@bob hello")) == {"ann", "bob"}


def test_who_takes_no_requests_any_more_hears_no_more_of_old_ones(people: dict[str, User]) -> None:
    ann, bob = people["ann"], people["bob"]
    first = tell(ann, "@bob hello")
    say(ann, "are you there?", reply_to=first)
    bob.takes_requests = False
    bob.save(update_fields=["takes_requests"])
    conversations.hide_conversation(reader=bob, conversation_id=first.pk)
    with pytest.raises(ContentError, match="@bob only accepts private mentions"):
        say(ann, "hello?", reply_to=first)
    assert Participant.objects.get(user=bob).last is None
    say(bob, "go away", reply_to=first)
    assert say(ann, "sorry", reply_to=first).conversation_id == first.pk


def test_an_accepted_conversation_goes_on(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob hello")
    conversations.accept(reader=people["bob"], conversation_id=first.pk)
    User.objects.filter(pk=people["bob"].pk).update(takes_requests=False)
    newest = say(people["ann"], "still there?", reply_to=first)
    assert Participant.objects.get(user=people["bob"]).last == newest.pk


def test_one_who_takes_no_requests_stops_no_others(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob @cid hello")
    User.objects.filter(pk=people["bob"].pk).update(takes_requests=False)
    newest = say(people["ann"], "cid?", reply_to=first)
    listed = dict(Participant.objects.filter(conversation=first).values_list("user__username", "last"))
    assert listed == {"ann": newest.pk, "bob": first.pk, "cid": newest.pk}
    User.objects.filter(pk=people["cid"].pk).update(takes_requests=False)
    with pytest.raises(ContentError):
        say(people["ann"], "anybody?", reply_to=first)
    relations.follow(follower=people["bob"], followee=people["ann"])
    last = say(people["ann"], "bob?", reply_to=first)
    assert Participant.objects.get(user=people["bob"]).last == last.pk
    assert requests_of(people["bob"]) == []


def test_a_refusal_does_not_tell_of_a_block(people: dict[str, User]) -> None:
    first = tell(people["ann"], "@bob hello")
    User.objects.filter(pk=people["bob"].pk).update(takes_requests=False)
    relations.block(blocker=people["bob"], blocked=people["ann"])
    assert readers(say(people["ann"], "hello?", reply_to=first)) == {"ann"}


def test_strangers_are_written_to_at_a_rate(people: dict[str, User], settings: Any) -> None:
    settings.RATES = settings.RATES | {"strangers": "2/day"}
    tell(people["ann"], "@bob hello")
    with pytest.raises(StrangersError) as refused:
        tell(people["ann"], "@cid @dan hello")
    assert refused.value.wait > 80_000
    relations.follow(follower=people["dan"], followee=people["ann"])
    tell(people["ann"], "@cid @dan hello")
    with pytest.raises(StrangersError):
        tell(people["ann"], "@bob hello again")
    assert Correspondent.objects.filter(writer=people["ann"]).count() == 3


def test_a_refused_message_counts_no_strangers(people: dict[str, User], settings: Any) -> None:
    settings.RATES = settings.RATES | {"strangers": "1/day"}
    pictures = {"text": "@bob look", "media": ["1"]}
    for _ in range(2):
        with pytest.raises(ContentError, match="gone, already used, or not yours"):
            items.publish(sender=people["ann"], visibility="mentioned", type="image", content=pictures)
    tell(people["ann"], "@bob hello")
