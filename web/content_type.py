from django.utils.http import parse_header_parameters


def without_bad_charset(content_type: str) -> str:
    """The content type without an unknown encoding (`a/b; x*=none''c`).

    Django raises ValueError for that before any middleware runs.
    """
    if "*" not in content_type:  # only parameters with an asterisk name an encoding
        return content_type
    try:
        parse_header_parameters(content_type)
    except ValueError:
        return content_type.partition(";")[0]
    return content_type
