import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from socket import create_connection
from typing import Any

import pytest
import websocket
from django.test import Client as Browser
from oauth2_provider.models import AccessToken

from accounts import actions as accounts
from accounts.models import User
from clientapi.errors import ClientError
from clientapi.oauth.actions import OUT_OF_BAND, register
from clientapi.streaming import streaming
from clientapi.streaming.streaming import messages_for
from clientapi.streaming.streams import ClientHearer, Stream, after_message, stream_of
from items import actions as items
from items.conversations.conversations import hide_conversation
from items.filters import filters
from items.models import Item, Visibility
from relations import actions as relations
from relations import lists
from runtime.embedded import wait_for
from storage.events import Edited, Entry, Event, FiltersChanged, Notified, Position, Published, Withdrawn
from stream.connections import GONE, REFUSED
from stream.sockets import MESSAGES
from tests.support.clients import Caller, token_of
from tests.support.factories import UserFactory, say
from tests.support.statements import statements
from tests.support.streams import Client, RefusedError, StreamServer

ALL = frozenset({"read"})
HOME = stream_of("user", ALL, User(pk=1))
PUBLIC = stream_of("public:local", ALL, User(pk=1))
DIRECT = stream_of("direct", ALL, User(pk=1))


def hearer(user: User, *streams: Stream, is_socket: bool = False) -> ClientHearer:
    return ClientHearer(user.pk, streams or (HOME,), is_socket)


def told(hearers: list[ClientHearer], *events: Event) -> dict[ClientHearer, list[tuple[str, Any]]]:
    """Pairs of event and data, in order."""
    found: dict[ClientHearer, list[tuple[str, Any]]] = {one: [] for one in hearers}
    entries: list[Entry] = [(Position(int(time.time() * 1000), number), event) for number, event in enumerate(events)]
    for one, _, data in messages_for(hearers, entries):
        name, _, payload = data.decode().removeprefix("event: ").partition("\ndata: ")
        found[one].append((name, json.loads(payload)))
    return found


@pytest.mark.django_db
class TestStatuses:
    def test_a_home_hears_of_what_it_shows(self) -> None:
        sender, follower, stranger = UserFactory.create_batch(3)
        relations.follow(follower=follower, followee=sender)
        item = say(sender, "first", visibility=Visibility.FOLLOWERS)
        hearers = [hearer(follower), hearer(stranger), hearer(sender)]
        found = told(hearers, Published(item.pk))
        for one in (hearers[0], hearers[2]):
            ((name, status),) = found[one]
            assert (name, status["id"], status["content"], status["visibility"]) == (
                "update",
                str(item.pk),
                "<p>first</p>",
                "private",
            )
        assert found[hearers[1]] == []
        items.edit(item=item, content={"text": "second"})
        ((name, status),) = told(hearers, Edited(item.pk, "followers"))[hearers[0]]
        assert (name, status["content"]) == ("status.update", "<p>second</p>")
        items.delete(item=item)
        found = told(hearers, Withdrawn(item.pk, "followers"))
        assert found[hearers[0]] == [("delete", item.pk)]
        assert found[hearers[1]] == []

    def test_a_narrowed_item_is_deleted_for_those_who_see_it_no_more(self) -> None:
        sender, follower = UserFactory.create_batch(2)
        relations.follow(follower=follower, followee=sender)
        item = say(sender)
        Item.objects.filter(pk=item.pk).update(visibility=Visibility.SELF)
        assert told([hearer(follower)], Edited(item.pk, "public"))[hearer(follower)] == [("delete", item.pk)]

    def test_members_of_exclusive_lists_are_on_the_list_and_not_at_home(self) -> None:
        sender, reader = UserFactory.create_batch(2)
        relations.follow(follower=reader, followee=sender)
        made = lists.create(owner=reader, title="a list", is_exclusive=True)
        lists.add(owner=reader, list_id=made.pk, member=sender)
        item = say(sender)
        home, listed = hearer(reader), hearer(reader, stream_of("list", ALL, reader, list_id=str(made.pk)))
        found = told([home, listed], Published(item.pk))
        assert found[home] == []
        assert [name for name, _ in found[listed]] == ["update"]

    def test_public_posts_are_told_to_all_but_those_who_are_blocked(self) -> None:
        sender, stranger, blocked = UserFactory.create_batch(3)
        relations.block(blocker=sender, blocked=blocked)
        post, reply = say(sender), say(stranger)
        reply = say(stranger, reply_to=post)
        closed = say(sender, visibility=Visibility.FOLLOWERS)
        hearers = [hearer(stranger, PUBLIC), hearer(blocked, PUBLIC)]
        found = told(hearers, *(Published(item.pk) for item in (post, reply, closed)))
        assert [status["id"] for _, status in found[hearers[0]]] == [str(post.pk)]
        assert found[hearers[1]] == []

    def test_a_hashtag_in_any_spelling(self) -> None:
        sender, reader = UserFactory.create_batch(2)
        with_tag, without = say(sender, "look: #\uff23ats"), say(sender, "cats")
        watching = hearer(reader, stream_of("hashtag", ALL, reader, tag="CATS"))
        found = told([watching], Published(with_tag.pk), Published(without.pk))
        assert [status["id"] for _, status in found[watching]] == [str(with_tag.pk)]
        items.delete(item=with_tag)
        assert told([watching], Withdrawn(with_tag.pk, "public"))[watching] == [("delete", with_tag.pk)]

    def test_another_sees_their_own_marks_and_filters(self) -> None:
        sender, plain, fond, filtering = UserFactory.create_batch(4)
        for reader in (plain, fond, filtering):
            relations.follow(follower=reader, followee=sender)
        item = say(sender, "a cat")
        items.like(user=fond, item=item)
        items.bookmark(user=fond, item=item)
        filters.create(owner=filtering, phrase="cat", whole_word=True)
        found = told([hearer(plain), hearer(fond), hearer(filtering)], Edited(item.pk, "public"))
        ((_, status),) = found[hearer(plain)]
        assert (status["favourited"], status["bookmarked"], status["filtered"]) == (False, False, [])
        ((_, status),) = found[hearer(fond)]
        assert (status["favourited"], status["bookmarked"], status["reblogged"]) == (True, True, False)
        ((_, status),) = found[hearer(filtering)]
        assert (status["favourited"], status["filtered"][0]["keyword_matches"]) == (False, ["cat"])

    def test_many_hearers_cost_no_more_statements(self) -> None:
        sender = UserFactory()
        readers = UserFactory.create_batch(12)
        for reader in readers:
            relations.follow(follower=reader, followee=sender)
        item = say(sender)
        told([hearer(readers[0])], Published(item.pk))
        counts = []
        for some in (readers[:2], readers):
            with statements() as asked:
                told([hearer(one, HOME, PUBLIC) for one in some], Published(item.pk))
            counts.append(len(asked))
        assert counts[0] == counts[1] <= 6


@pytest.mark.django_db
class TestConversations:
    @pytest.fixture
    def people(self) -> list[User]:
        ann, bob, cid = (UserFactory(username=name) for name in ("ann", "bob", "cid"))
        relations.follow(follower=bob, followee=ann)
        return [ann, bob, cid]

    def test_its_people_hear_of_a_message(self, people: list[User]) -> None:
        ann, bob, _ = people
        first = say(ann, "@bob hello", visibility=Visibility.MENTIONED)
        hearers = [hearer(one, DIRECT, HOME, PUBLIC) for one in people]
        found = told(hearers, Published(first.pk))
        assert found[hearers[2]] == []
        for one, other, is_unread in ((ann, bob, False), (bob, ann, True)):
            ((name, talk),) = found[hearer(one, DIRECT, HOME, PUBLIC)]
            assert name == "conversation"
            assert (talk["id"], talk["unread"]) == (str(first.pk), is_unread)
            assert [account["id"] for account in talk["accounts"]] == [str(other.pk)]
            assert talk == Caller(one).get("v1/conversations")[0]
        reply = say(bob, "hi", reply_to=first)
        both = told(hearers, Edited(first.pk, "mentioned"), Published(reply.pk))
        assert [talk["last_status"]["id"] for _, talk in both[hearers[0]]] == [str(reply.pk)], "once a batch"
        items.delete(item=reply)
        ((_, talk),) = told(hearers, Withdrawn(reply.pk, "mentioned"))[hearers[0]]
        assert talk["last_status"]["id"] == str(first.pk)
        items.delete(item=first)
        assert told(hearers, Withdrawn(first.pk, "mentioned"))[hearers[0]] == []

    def test_other_streams_and_other_items_tell_of_none(self, people: list[User]) -> None:
        ann, bob, _ = people
        first, post = say(ann, "@bob hello", visibility=Visibility.MENTIONED), say(ann, "@bob open")
        assert told([hearer(bob, PUBLIC)], Published(first.pk))[hearer(bob, PUBLIC)] == []
        assert told([hearer(bob, DIRECT)], Published(post.pk))[hearer(bob, DIRECT)] == []

    def test_strangers_and_those_whom_one_turned_away_are_not_heard(self, people: list[User]) -> None:
        ann, bob, cid = people
        listening = hearer(bob, DIRECT)
        request = say(cid, "@bob hey", visibility=Visibility.MENTIONED)
        assert told([listening], Published(request.pk))[listening] == []
        relations.follow(follower=bob, followee=cid)
        first = say(ann, "@bob @cid hello", visibility=Visibility.MENTIONED)
        relations.mute(muter=bob, muted=ann)
        more = say(ann, "more", reply_to=first)
        assert told([listening], Published(more.pk))[listening] == []
        of_cid = say(cid, "mine", reply_to=first)
        say(ann, "and more", reply_to=first)
        ((_, talk),) = told([listening], Published(of_cid.pk))[listening]
        assert talk["last_status"]["id"] == str(of_cid.pk)
        relations.block(blocker=cid, blocked=bob)
        assert told([listening], Edited(of_cid.pk, "mentioned"))[listening] == []

    def test_what_was_put_away_is_not_heard_of(self, people: list[User]) -> None:
        ann, bob, _ = people
        first = say(ann, "@bob hello", visibility=Visibility.MENTIONED)
        hide_conversation(reader=bob, conversation_id=first.pk)
        assert told([hearer(bob, DIRECT)], Edited(first.pk, "mentioned"))[hearer(bob, DIRECT)] == []


@pytest.mark.django_db
class TestOneself:
    def test_notifications_are_told_once(self) -> None:
        reader, other = UserFactory.create_batch(2)
        item = say(reader)
        streaming.last_notified = streaming.LastNotified()
        assert told([hearer(reader)], Notified(reader.pk, {}))[hearer(reader)] == []
        items.like(user=other, item=item)
        found = told([hearer(reader), hearer(other)], Notified(reader.pk, {}))
        ((name, notification),) = found[hearer(reader)]
        assert (name, notification["type"]) == ("notification", "favourite")
        assert (notification["account"]["id"], notification["status"]["id"]) == (str(other.pk), str(item.pk))
        assert found[hearer(other)] == []
        assert told([hearer(reader)], Notified(reader.pk, {}))[hearer(reader)] == [], "it was told"

    def test_each_of_several_who_like_at_once_is_told(self) -> None:
        reader, *others = UserFactory.create_batch(4)
        item = say(reader)
        streaming.last_notified = streaming.LastNotified()
        for other in others:
            items.like(user=other, item=item)
        found = told([hearer(reader)], Notified(reader.pk, {}))[hearer(reader)]
        assert [each["account"]["id"] for _, each in found] == [str(other.pk) for other in others]

    def test_what_came_long_before_is_not_told_again(self) -> None:
        """For example by a read mark, after a time without open apps."""
        reader, *others = UserFactory.create_batch(3)
        streaming.last_notified = streaming.LastNotified()
        items.like(user=others[0], item=say(reader))
        assert told([hearer(reader)], Notified(reader.pk, {}))[hearer(reader)]
        items.like(user=others[1], item=say(reader))
        late = Position(int(time.time() * 1000) + 6_000, 0)
        assert not list(messages_for([hearer(reader)], [(late, Notified(reader.pk, {}))]))

    def test_filters_that_changed(self) -> None:
        reader = UserFactory()
        socket = hearer(reader, HOME, is_socket=True)
        (message,) = messages_for([socket], [(Position(1, 1), FiltersChanged(reader.pk))])
        assert json.loads(message[2]) == {"stream": ["user"], "event": "filters_changed"}
        (message,) = messages_for([hearer(reader)], [(Position(1, 1), FiltersChanged(reader.pk))])
        assert message[2] == b"event: filters_changed\ndata: undefined\n\n", "empty data would be no event"


class TestStreams:
    @pytest.mark.parametrize(
        "wrong", [7, [], {}, {"type": "x"}, {"type": "subscribe", "stream": "no"}, {"type": "subscribe"}]
    )
    def test_what_a_client_says_may_be_anything(self, wrong: Any) -> None:
        with pytest.raises(ClientError):
            after_message(ClientHearer(1, (), True), wrong, ALL)

    def test_streams_come_and_go(self) -> None:
        one = after_message(ClientHearer(1, (), True), {"type": "subscribe", "stream": "user"}, ALL)
        two = after_message(one, {"type": "subscribe", "stream": "hashtag", "tag": "cats"}, ALL)
        assert [stream.name for stream in two.streams] == [("user",), ("hashtag", "cats")]
        assert after_message(two, {"type": "subscribe", "stream": "user"}, ALL) == two
        assert after_message(two, {"type": "unsubscribe", "stream": "hashtag", "tag": "cats"}, ALL) == one

    def test_a_connection_has_so_many_streams(self) -> None:
        full = ClientHearer(1, (), True)
        for number in range(20):
            full = after_message(full, {"type": "subscribe", "stream": "hashtag", "tag": f"t{number}"}, ALL)
        with pytest.raises(ClientError):
            after_message(full, {"type": "subscribe", "stream": "user"}, ALL)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[StreamServer]:
    """Shared, because its start is slow."""
    server = StreamServer(tmp_path_factory.mktemp("stream"))
    yield server
    server.end()


@pytest.fixture
def server(process: StreamServer) -> StreamServer:
    """Runs, and has no connections."""
    if process.process is None or process.process.poll() is not None:
        process.start()
    assert wait_for(lambda: not process.holds_connections(), 30)
    return process


Connect = Callable[..., websocket.WebSocket]
Listen = Callable[..., Client]


@pytest.fixture
def connect(server: StreamServer) -> Iterator[Connect]:
    opened: list[websocket.WebSocket] = []

    def connect(query: str, **options: Any) -> websocket.WebSocket:
        socket = websocket.WebSocket()
        opened.append(socket)
        socket.settimeout(30)
        socket.connect(f"ws://127.0.0.1:{server.port}/api/v1/streaming{query}", **options)
        return socket

    yield connect
    for socket in opened:
        socket.shutdown()


@pytest.fixture
def listen(server: StreamServer) -> Iterator[Listen]:
    opened: list[Client] = []

    def listen(path: str, query: str = "", token: str = "") -> Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        opened.append(Client(server.port, query, headers, f"/api/v1/streaming/{path}"))
        return opened[-1]

    yield listen
    for client in opened:
        client.close()


BROKEN = 0
"""Instead of a code if no close frame came."""


def code_of(socket: websocket.WebSocket) -> int:
    """Skips messages before the close."""
    with suppress(websocket.WebSocketException, OSError):
        while True:
            kind, data = socket.recv_data()
            if kind == websocket.ABNF.OPCODE_CLOSE:
                return int.from_bytes(data[:2])
    return BROKEN


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestServer:
    def test_a_stream(self, listen: Listen) -> None:
        sender, reader = UserFactory.create_batch(2)
        relations.follow(follower=reader, followee=sender)
        registered = register(name="An app", addresses=[OUT_OF_BAND], asked="read")
        token = token_of(reader, "read", app=registered.app)
        named = listen("user", token=token)
        public = listen("public/local", f"?access_token={token}")
        item = say(sender, "hello")
        for client in (named, public):
            client.waits_for(lambda one: bool(one.heard))
            assert (client.heard[0].name, client.heard[0].data["content"]) == ("update", "<p>hello</p>")
        items.delete(item=item)
        named.waits_for(lambda one: len(one.heard) == 2)
        assert (named.heard[1].name, named.heard[1].data) == ("delete", item.pk)
        fields = {"client_id": registered.app.client_id, "client_secret": registered.secret, "token": token}
        assert Browser().post("/oauth/revoke", fields).status_code == 200
        assert wait_for(lambda: named.has_ended and public.has_ended, 5)

    def test_refusals(self, listen: Listen) -> None:
        for path, scopes, status in (
            ("user", "read:accounts", 403),
            ("user/notification", "read:statuses", 403),
            ("list?list=1", "read:statuses", 403),
            ("list?list=1", "read:lists", 404),
            ("list?list=1", "read", 404),
            ("hashtag?tag=%20", "read", 400),
            ("nothing", "read", 400),
            ("", "read", 404),
            ("user", "", 401),
        ):
            token = token_of(UserFactory(), scopes) if scopes else "x"
            with pytest.raises(RefusedError) as refusal:
                listen(path, token=token)
            assert refusal.value.args[0] == status, (path, scopes)
            assert "error" in json.loads(refusal.value.args[1])

    def test_a_socket(self, server: StreamServer, connect: Connect) -> None:
        sender, reader = UserFactory.create_batch(2)
        relations.follow(follower=reader, followee=sender)
        token = token_of(reader, "read")
        first = connect(f"?stream=user&access_token={token}")
        second = connect("", subprotocols=[token])
        second.send(json.dumps({"type": "subscribe", "stream": "hashtag", "tag": "cats"}))
        for wrong in ("nonsense", "[" * 1_990):
            second.send(wrong)
            assert json.loads(second.recv())["status"] == 400
        named = connect("/user/", header=[f"Authorization: Bearer {token}"])
        tagged = connect("/hashtag?tag=cats", subprotocols=[token, "other"])
        item = say(sender, "see #cats")
        about_cats = ["hashtag", "cats"]
        for one, name in ((first, ["user"]), (second, about_cats), (named, ["user"]), (tagged, about_cats)):
            message = json.loads(one.recv())
            assert (message["stream"], message["event"]) == (name, "update")
            assert json.loads(message["payload"])["id"] == str(item.pk)
        accounts.revoke_token(token_id=AccessToken.objects.get().pk)
        began = time.monotonic()
        assert (code_of(first), code_of(second)) == (REFUSED, REFUSED)
        assert time.monotonic() < began + 1
        assert token not in server.said(), "addresses with tokens are logged nowhere"

    def test_the_end_of_the_process_is_told(self, server: StreamServer, connect: Connect) -> None:
        socket = connect(f"?stream=user&access_token={token_of(UserFactory(), 'read')}")
        assert server.process is not None
        server.process.terminate()
        assert code_of(socket) == GONE
        assert server.process.wait(5) == 0

    def test_a_request_with_a_body_is_not_waited_for(self, server: StreamServer) -> None:
        with create_connection(("127.0.0.1", server.port), 5) as one:
            one.sendall(b"POST /api/v1/streaming/user HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
            assert b" 40" in one.recv(1000)

    def test_a_content_type_that_cannot_be_read(self, server: StreamServer) -> None:
        for path in ("/api/v1/streaming/user", "/api/v1/stream", "/healthz"):
            with create_connection(("127.0.0.1", server.port), 5) as one:
                one.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: a/b; x*=none''c\r\n\r\n".encode())
                assert one.recv(1000).split()[1] == (b"200" if path == "/healthz" else b"401"), path

    @pytest.mark.long
    def test_a_quiet_socket_gets_a_message(self, connect: Connect) -> None:
        socket = connect(f"?stream=user&access_token={token_of(UserFactory(), 'read')}")
        socket.settimeout(60)
        began = time.monotonic()
        message = json.loads(socket.recv())
        assert message == {"stream": [], "event": "heartbeat", "payload": "{}"}
        assert 25 < time.monotonic() - began < 50

    def test_a_socket_without_a_token_is_not_opened(self, connect: Connect) -> None:
        with pytest.raises(websocket.WebSocketBadStatusException):
            connect("?stream=user")

    def test_a_client_that_says_too_much_is_cut_off(self, connect: Connect) -> None:
        socket = connect(f"?access_token={token_of(UserFactory(), 'read')}")
        with suppress(websocket.WebSocketException, OSError):
            for _ in range(60):
                socket.send("nonsense")
        answers = []
        with suppress(websocket.WebSocketException, OSError):
            while (answer := socket.recv_data())[0] != websocket.ABNF.OPCODE_CLOSE:
                answers.append(answer)
        assert len(answers) <= MESSAGES
