import pytest

from web.content_type import without_bad_charset


@pytest.mark.parametrize("kind", ["", "text/plain", "text/html; charset=utf-8", "a/b; x*=utf-8''%e4", "*", "a/b; *=*"])
def test_others_stay_as_they_are(kind: str) -> None:
    assert without_bad_charset(kind) == kind


@pytest.mark.parametrize("rest", ["x*=none''c", "charset=utf-8; x*=none''%41"])
def test_parameters_in_no_encoding_are_dropped(rest: str) -> None:
    assert without_bad_charset(f"application/json; {rest}") == "application/json"
