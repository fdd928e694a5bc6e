import pytest
from django.conf import LazySettings
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from web import rates
from web.proxy import SCHEME, ProxyMiddleware, parse


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "said"),
    [
        ('for="192.0.2.1";proto=https', ("192.0.2.1", "https")),
        ("For=192.0.2.1; Proto=HTTP", ("192.0.2.1", "http")),
        ('proto=https;by=proxy;for="192.0.2.1:4711"', ("192.0.2.1", "https")),
        ('for="[2001:db8::1]:4711"', ("2001:db8::1", "")),
        ('for="[2001:db8::1]"', ("2001:db8::1", "")),
        ('for="2001:db8::1";proto=http', ("2001:db8::1", "http")),
        ("for=6.6.6.6;proto=https, for=192.0.2.1;proto=http", ("192.0.2.1", "http")),
        ('for=", for="192.0.2.1"', ("192.0.2.1", "")),
        ("for=6.6.6.6,", ("", "")),
        ("for=unknown;proto=https", ("", "https")),
        ("for=_hidden", ("", "")),
        ("192.0.2.1", ("", "")),
        ("", ("", "")),
    ],
)
def test_the_last_element_is_read(header: str, said: tuple[str, str]) -> None:
    assert parse(header) == said


def passed(rf: RequestFactory, **meta: str) -> HttpRequest:
    """The request after the middleware."""
    request = rf.get("/", REMOTE_ADDR="10.0.0.1", **meta)
    ProxyMiddleware(lambda _: HttpResponse())(request)
    return request


def test_the_header_is_believed_where_a_proxy_sets_it(rf: RequestFactory, settings: LazySettings) -> None:
    settings.SECURE_PROXY_SSL_HEADER = (SCHEME, "https")
    said = {"HTTP_FORWARDED": "for=192.0.2.1;proto=https"}
    for proxy, address in ((False, "10.0.0.1"), (True, "192.0.2.1")):
        settings.PROXY = proxy
        request = passed(rf, **said)
        assert rates.address(request) == address
        assert request.is_secure() is proxy
    assert rates.address(passed(rf, HTTP_FORWARDED="for=unknown")) == "10.0.0.1"
    assert not passed(rf, HTTP_FORWARDED="for=192.0.2.1").is_secure()


@pytest.mark.slow
def test_a_request_past_the_proxy_is_of_its_own_peer(rf: RequestFactory, settings: LazySettings) -> None:
    """A client can spell hyphenated names otherwise."""
    settings.PROXY = True
    settings.SECURE_PROXY_SSL_HEADER = (SCHEME, "https")
    names = ("HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_X_FORWARDED_PROTO", "HTTP_FEEDSITE.SCHEME")
    request = passed(rf, **dict.fromkeys(names, "https"), HTTP_X_FORWARDED_HOST="evil.example")
    assert rates.address(request) == "10.0.0.1"
    assert not request.is_secure()
    assert request.get_host() == "testserver"
