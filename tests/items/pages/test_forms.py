from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict

from accounts.models import User
from items.actions import publish
from items.hydrate import hydrate
from items.models import Item, Visibility
from items.pages.forms import EditForm, HomeForm, ItemForm, MultilineField, focus_of
from media.models import MediaFile
from relations.actions import follow
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg, mp4, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder")]


def composer(owner: User, files: dict[str, Any] | None = None, **fields: Any) -> ItemForm:
    """Lists repeat a field's name, as in a browser."""
    data = QueryDict(mutable=True)
    for name, value in {"text": "words", "visibility": "public", **fields}.items():
        data.setlist(name, value if isinstance(value, list) else [value])
    form = ItemForm(data, files or {})
    form.store_media(owner)
    return form


def described(*ids: str) -> list[tuple[str, float, float]]:
    rows = MediaFile.objects.in_bulk([int(one) for one in ids])
    return [(rows[int(one)].description, rows[int(one)].focus_x, rows[int(one)].focus_y) for one in ids]


def test_pictures_keep_their_order_words_and_focus(ann: User) -> None:
    one, two = sent(ann), sent(ann)
    form = composer(ann, text="", media=[two, one], description=["two", "one"], focus=["0.5,-1", "nowhere"])
    assert form.is_valid(), form.errors
    assert form.media_errors == []
    assert (form.type, form.content["media"]) == ("image", [two, one])
    assert described(two, one) == [("two", 0.5, -1.0), ("one", 0.0, 0.0)]


def test_without_pictures_there_are_words(ann: User) -> None:
    assert not composer(ann, text="").is_valid()


def test_pictures_of_others_are_neither_taken_nor_described(ann: User) -> None:
    others, mine = sent(UserFactory.create(), description="theirs"), sent(ann)
    form = composer(ann, media=[others, mine], description=["mine now", "mine"], focus=["1,1", "0,0"])
    assert len(form.media_errors) == 1
    assert [row.pk for row in form.taken] == [int(mine)]
    assert described(others, mine) == [("theirs", 0.0, 0.0), ("mine", 0.0, 0.0)]


def test_pictures_that_a_post_has_keep_their_words(ann: User) -> None:
    """A form may arrive again if its first answer was lost."""
    used = sent(ann, description="said")
    posted(ann, used)
    composer(ann, media=[used], description=["other"], focus=["1,1"])
    assert described(used) == [("said", 0.0, 0.0)]


def test_without_javascript_a_picture_is_kept_by_its_tick(ann: User) -> None:
    one, two = sent(ann), sent(ann)
    form = composer(ann, media=[one, two], description=["one", "two"], focus=["0,0", "0,0"], keeps="1", keep=[two])
    assert [row.pk for row in form.taken] == [int(two)]
    assert form.media_errors == []


def test_files_are_taken_once_for_a_key(ann: User) -> None:
    for _ in range(2):
        form = composer(ann, {"file_1": upload(jpeg())}, text="", file_description_1="a cat", key="0" * 32)
        assert form.is_valid(), form.errors
    assert [row.description for row in MediaFile.objects.all()] == ["a cat"]


def test_a_refused_file_is_told_and_the_others_stay(ann: User) -> None:
    files = {"file_1": SimpleUploadedFile("a.txt", b"no picture"), "file_2": upload(jpeg())}
    form = composer(ann, files)
    assert len(form.media_errors) == 1
    assert len(form.taken) == 1


@pytest.mark.parametrize("count", [1, 4])
def test_a_post_has_four_pictures_or_one_video(ann: User, count: int) -> None:
    pictures = [sent(ann) for _ in range(count)]
    assert composer(ann, media=pictures).media_errors == []
    too_many = composer(ann, {"file_1": upload(mp4(), "a.mp4")}, media=pictures)
    assert len(too_many.media_errors) == 1


def test_a_video_alone(ann: User) -> None:
    form = composer(ann, text="", media=[sent(ann, mp4())])
    assert (form.is_valid(), form.type, form.media_errors) == (True, "video", [])


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("0.5,-0.25", (0.5, -0.25)),
        ("1,1", (1.0, 1.0)),
        ("1.01,0", (0.0, 0.0)),
        ("0,-2", (0.0, 0.0)),
        ("nan,0", (0.0, 0.0)),
        ("inf,0", (0.0, 0.0)),
        ("1", (0.0, 0.0)),
        ("1,1,1", (0.0, 0.0)),
        ("", (0.0, 0.0)),
    ],
)
def test_a_focus_is_within_the_picture(text: str, point: tuple[float, float]) -> None:
    assert focus_of(text) == point


def test_line_breaks_are_line_feeds() -> None:
    assert MultilineField().clean("one\r\ntwo\rthree\nfour") == "one\ntwo\nthree\nfour"


def audience(answered: Item, reader: User) -> Any:
    return ItemForm.fresh(hydrate([answered.pk], reader)[0], reader)["visibility"].value()


def test_a_reply_begins_with_the_audience_of_what_it_answers(ann: User) -> None:
    reader = UserFactory.create()
    follow(follower=reader, followee=ann)
    follow(follower=ann, followee=reader)
    for visibility in (Visibility.PUBLIC, Visibility.FOLLOWERS, Visibility.MUTUALS):
        assert audience(publish(sender=ann, content={"text": "words"}, visibility=visibility), reader) == visibility


def test_a_reply_to_a_sender_who_does_not_follow_the_reader_reaches_them(ann: User) -> None:
    reader = UserFactory.create()
    follow(follower=reader, followee=ann)
    answered = publish(sender=ann, content={"text": "words"}, visibility=Visibility.FOLLOWERS)
    assert audience(answered, reader) == Visibility.PUBLIC
    assert audience(answered, ann) == Visibility.FOLLOWERS


def test_an_edit_keeps_what_it_does_not_name_and_is_checked(ann: User) -> None:
    item = publish(sender=ann, content={"text": "words", "warning": "careful"})
    form = EditForm(item, QueryDict("text=more%0D%0Awords"))
    assert form.is_valid(), form.errors
    assert form.content == {"text": "more\nwords", "warning": "careful"}
    assert "title" not in form.fields
    assert list(EditForm(item, QueryDict("text=")).errors) == ["text"]


def test_composers_at_home_share_their_fields_but_no_choice() -> None:
    reader, other = UserFactory.create(post_visibility="followers", post_sensitive=True), UserFactory.create()
    first, second = HomeForm.fresh(reader=reader), HomeForm.fresh(reader=other)
    assert first.fields is second.fields
    chosen = [[form[name].value() for name in ("visibility", "sensitive")] for form in (first, second)]
    assert chosen == [["followers", True], ["public", False]]
    assert first["key"].value() != second["key"].value()
