"""Archives in Mastodon's format: outbox.json, actor.json, bookmarks.json and media."""

import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

HOST = "https://mastodon.example"
ACTOR = f"{HOST}/users/ann"
PUBLIC = "https://www.w3.org/ns/activitystreams#Public"
FOLLOWERS = f"{ACTOR}/followers"
AUDIENCES = {
    "public": ([PUBLIC], [FOLLOWERS]),
    "unlisted": ([FOLLOWERS], [PUBLIC]),
    "private": ([FOLLOWERS], []),
    "direct": ([f"{HOST}/users/ben"], []),
}


def address(number: int) -> str:
    return f"{ACTOR}/statuses/{number}"


def note(number: int, html: str = "", *, audience: str = "public", **fields: Any) -> dict[str, Any]:
    """Its number is also its minute. `fields` belong to the Note."""
    to, cc = AUDIENCES[audience]
    published = fields.pop("published", f"2020-01-01T{number // 60:02}:{number % 60:02}:00Z")
    said = {
        "id": address(number),
        "type": "Note",
        "summary": None,
        "inReplyTo": None,
        "published": published,
        "url": f"{HOST}/@ann/{number}",
        "attributedTo": ACTOR,
        "to": to,
        "cc": cc,
        "sensitive": False,
        "atomUri": address(number),
        "inReplyToAtomUri": None,
        "conversation": f"tag:mastodon.example,2020:objectId={number}:objectType=Conversation",
        "content": html or f"<p>post {number}</p>",
        "contentMap": {"en": html or f"<p>post {number}</p>"},
        "attachment": [],
        "tag": [],
        "replies": {
            "id": f"{address(number)}/replies",
            "type": "Collection",
            "first": {"type": "CollectionPage", "next": None, "partOf": f"{address(number)}/replies", "items": []},
        },
    }
    return {
        "id": f"{address(number)}/activity",
        "type": "Create",
        "actor": ACTOR,
        "published": published,
        "to": to,
        "cc": cc,
        "object": said | fields,
        "signature": {"type": "RsaSignature2017", "creator": f"{ACTOR}#main-key", "signatureValue": "AA=="},
    }


def boost(number: int) -> dict[str, Any]:
    return {
        "id": f"{address(number)}/activity",
        "type": "Announce",
        "actor": ACTOR,
        "published": f"2020-01-01T{number // 60:02}:{number % 60:02}:00Z",
        "to": [PUBLIC],
        "cc": [FOLLOWERS],
        "object": "https://other.example/users/zed/statuses/1",
    }


def attachment(name: str, description: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "type": "Document",
        "mediaType": "image/jpeg",
        "url": f"/media_attachments/files/{name}",
        "name": description,
        "blurhash": "UBL_:rOpGG-oBUNG,qRj2so|=eE1w^n4S5NH",
        "width": 60,
        "height": 50,
        **fields,
    }


def collection(name: str, entries: Iterable[Any]) -> bytes:
    listed = list(entries)
    return json.dumps(
        {
            "@context": "https://www.w3.org/ns/activitystreams",
            "id": name,
            "type": "OrderedCollection",
            "totalItems": len(listed),
            "orderedItems": listed,
        }
    ).encode()


def actor(**fields: Any) -> bytes:
    said = {"id": ACTOR, "type": "Person", "preferredUsername": "ann", "name": "", "summary": ""}
    return json.dumps(said | {"outbox": "outbox.json", "likes": "likes.json"} | fields).encode()


def files_of(posts: Iterable[Any], media: Mapping[str, bytes] | None = None, **others: bytes) -> dict[str, bytes]:
    """Content by name. `others` are top-level files, with `_` for the dot."""
    files = {f"media_attachments/files/{name}": data for name, data in (media or {}).items()}
    files["outbox.json"] = collection("outbox.json", posts)
    return files | {name.replace("_", "."): data for name, data in others.items()}


def zipped(files: Mapping[str, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    packed.seek(0)
    return packed


def tarred(files: Mapping[str, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    packed.seek(0)
    return packed
