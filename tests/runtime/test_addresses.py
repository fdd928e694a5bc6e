"""Error messages repeat no secret."""

import re
from pathlib import Path

import pytest
from django.conf import settings

from runtime.addresses import CLUSTERS, origin, parse, parse_bucket, parse_mail, site_url
from runtime.environment import OptionsError
from tests.support.environments import given, refusal


# --- Mail ------------------------------------------------------------------------------------------------
def test_the_parts_of_mail() -> None:
    found = parse_mail("smtp+tls://site%40example.org:s3%2Fcret@mail.example.org")
    assert (found.host, found.port, found.user, found.password) == (
        "mail.example.org",
        587,
        "site@example.org",
        "s3/cret",
    )
    assert "s3" not in repr(found)
    assert parse_mail("smtps://a:b@mail.example.org").port == 465
    assert parse_mail("smtp://relay.internal:2525").port == 2525
    assert parse_mail("filemail:///srv/feedsite/letters").folder == "/srv/feedsite/letters"
    assert parse_mail("console://").backend == "accounts.mail.console.EmailBackend"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("smtp+tls://site:s3/cret@mail.example.org", "%2F"),
        ("smtp://site:s3cret@mail.example.org:port", "not valid"),
        ("smtp://site:s3cret#@mail.example.org", "%23"),
        ("smtp://site@mail.example.org", "without a password"),
        ("smtp://site:s3cret@mail.example.org/path", "text after the host"),
        ("smtp://", "has no host"),
        ("smtp://site:s3cret@mail.example.org:465", "smtps://"),
        ("smtp+tls://site:s3cret@mail.example.org:465", "smtps://"),
        ("filemail://letters", "three slashes"),
        ("filemail:///", "three slashes"),
        ("pigeon://mail.example.org", "begins with pigeon"),
        ("mail.example.org", "no scheme"),
    ],
)
def test_errors_about_mail_repeat_no_secret(url: str, reason: str) -> None:
    line = refusal(FEEDSITE_EMAIL_URL=url)
    assert reason in line
    assert "s3" not in line


@pytest.mark.parametrize(
    "sender", ["Feeds <a@example.org>\nBcc: b@example.org", "Feeds", "a@example.org, b@example.org"]
)
def test_a_sender_is_one_address(sender: str) -> None:
    with pytest.raises(OptionsError):
        given({"FEEDSITE_EMAIL_FROM": sender})


def test_the_address_of_a_site_that_is_told_none() -> None:
    assert site_url(["*"], False, 8000) == "http://localhost:8000"
    assert site_url(["localhost", "127.0.0.1"], False, 8010) == "http://localhost:8010"
    assert site_url(["*", ".example.org"], True, 8000) == "https://example.org"
    assert site_url(["feeds.example.org"], False, 8000) == "http://feeds.example.org"


def test_the_example_of_the_documents_is_taken() -> None:
    text = (Path(settings.BASE_DIR) / "docs" / "runbook.md").read_text()
    (lines,) = re.findall(r"```\n(FEEDSITE_URL=.*?)```", text, re.DOTALL)
    found = given(dict(line.split("=", 1) for line in lines.splitlines()))
    assert parse_mail(found.email_url).user == "feeds@example.org"
    assert found.url == "https://feeds.example.org"


# --- Buckets ---------------------------------------------------------------------------------------------
SECRET = "abc%2Fsecret"


def test_the_parts_of_a_bucket() -> None:
    found = parse_bucket(f"s3://key:{SECRET}@s3.eu-central-1.amazonaws.com/photos?public=https://cdn.example.org/p/")
    assert (found.key, found.secret, found.name) == ("key", "abc/secret", "photos")
    assert (found.endpoint, found.region) == ("https://s3.eu-central-1.amazonaws.com", "eu-central-1")
    assert (found.style, found.public) == ("path", "https://cdn.example.org/p")
    assert origin(found.public) == "https://cdn.example.org"
    assert "secret" not in repr(found)
    other = parse_bucket(f"s3://key:{SECRET}@minio/photos?endpoint=http://10.0.0.7:9000&style=virtual&region=here")
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
def test_errors_about_a_bucket_repeat_no_secret(url: str, reason: str) -> None:
    line = refusal(FEEDSITE_MEDIA_STORE=url)
    assert reason in line
    assert "secret@" not in line.replace("key:secret@", "")
    assert "abc" not in line
    assert line.startswith("FEEDSITE_MEDIA_STORE must be an address such as s3://")


# --- Clusters --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("url", "nodes", "first"),
    [
        ("redis+cluster://one", (("one", 6379),), "redis://one:6379"),
        ("redis+cluster://one:1,two:2/0", (("one", 1), ("two", 2)), "redis://one:1"),
        (
            "rediss+cluster://me:p%40ss@[::1]:7/?ssl_cert_reqs=none",
            (("::1", 7),),
            "rediss://me:p%40ss@[::1]:7?ssl_cert_reqs=none",
        ),
    ],
)
def test_the_parts_of_a_cluster(url: str, nodes: tuple[tuple[str, int], ...], first: str) -> None:
    address = parse(url, CLUSTERS)
    assert (address.nodes, address.url_of(*address.nodes[0])) == (nodes, first)


@pytest.mark.parametrize(
    "url", ["redis+cluster://", "redis+cluster://a,", "redis+cluster://a/1", "redis+cluster://a:x", "redis://a"]
)
def test_a_cluster_with_a_malformed_address(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(url, CLUSTERS)
