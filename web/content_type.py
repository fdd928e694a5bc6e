"""The Content-Type of requests, before Django reads it."""

from django.utils.http import parse_header_parameters


def readable(content_type: str) -> str:
    """A content type, without parameters if Django cannot read them: one whose value is in an encoding that does not
    exist (`a/b; x*=none''c`) raises ValueError while the request is made, before any view or middleware.
    """
    if "*" not in content_type:  # only such parameters name an encoding
        return content_type
    try:
        parse_header_parameters(content_type)
    except ValueError:
        return content_type.partition(";")[0]
    return content_type
