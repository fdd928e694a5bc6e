"""Error messages repeat no secret."""

import pytest

from runtime.bucket_address import origin, parse
from tests.support.environments import refusal

SECRET = "abc%2Fsecret"


def test_its_parts() -> None:
    found = parse(f"s3://key:{SECRET}@s3.eu-central-1.amazonaws.com/photos?public=https://cdn.example.org/p/")
    assert (found.key, found.secret, found.name) == ("key", "abc/secret", "photos")
    assert (found.endpoint, found.region) == ("https://s3.eu-central-1.amazonaws.com", "eu-central-1")
    assert (found.style, found.public) == ("path", "https://cdn.example.org/p")
    assert origin(found.public) == "https://cdn.example.org"
    assert "secret" not in repr(found)
    other = parse(f"s3://key:{SECRET}@minio/photos?endpoint=http://10.0.0.7:9000&style=virtual&region=here")
    assert (other.endpoint, other.style, other.region) == ("http://10.0.0.7:9000", "virtual", "here")
    assert origin(other.public) == ""


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://key:abc/secret@host/photos", "%2F"),
        ("s3://key:1/secret@host/photos", "%2F"),
        ("s3://key:abc#secret@host/photos", "%2F"),
        (f"s3://key:{SECRET}@host/photos#x", "%23"),
        ("s3://host/photos", "no key:secret@"),
        ("s3://key@host/photos", "no key:secret@"),
        (f"s3://key:{SECRET}@/photos", "has no host"),
        (f"s3://key:{SECRET}@host", "not a bucket's name"),
        (f"s3://key:{SECRET}@host/", "not a bucket's name"),
        (f"s3://key:{SECRET}@host/Photos", "not a bucket's name"),
        (f"s3://key:{SECRET}@host/photos/folder", "not a bucket's name"),
        (f"s3://key:{SECRET}@host/photos?publik=https://x", "endpoint, public, region, style"),
        (f"s3://key:{SECRET}@host/photos?region=a&region=b", "twice"),
        (f"s3://key:{SECRET}@host/photos?region=A;B", "region"),
        (f"s3://key:{SECRET}@host/photos?style=other", "style"),
        (f"s3://key:{SECRET}@host/photos?endpoint=host:9000", "origin"),
        (f"s3://key:{SECRET}@host/photos?endpoint=https://host/path", "origin"),
        (f"s3://key:{SECRET}@host/photos?public=cdn.example.org", "public address"),
        (f"s3://key:{SECRET}@host/photos?public=https://cdn.example.org;img-src", "public address"),
        (f"s3://key:{SECRET}@host/photos?public=https://cdn.example.org/%3Fx", "public address"),
        (f"s3://key:{SECRET}@host:port/photos", "not valid"),
        (f"https://key:{SECRET}@host/photos", "begins with https://"),
    ],
)
def test_errors_repeat_no_secret(url: str, reason: str) -> None:
    line = refusal(FEEDSITE_MEDIA_STORE=url)
    assert reason in line
    assert "secret@" not in line.replace("key:secret@", "")
    assert "abc" not in line
    assert line.startswith("FEEDSITE_MEDIA_STORE must be an address such as s3://")
