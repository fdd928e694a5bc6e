"""The site's rates and their defaults. `FEEDSITE_RATES` overrides them (runtime/options.py), web/rates.py counts."""

import re
from functools import lru_cache
from typing import NamedTuple

PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}


class Rate(NamedTuple):
    """The default of a rate, and what it counts."""

    default: str
    text: str


RATES = {
    "attempt": Rate("300/minute", "Tokens and sessions not known to be good, per address."),
    "signup": Rate("20/hour", "Sign-ups, per address."),
    "signup_day": Rate("50/day", "Sign-ups, per address, over a longer time."),
    "signup_network": Rate("200/day", "Sign-ups, per network: the /24 of an IPv4 address, the /48 of IPv6."),
    "invite": Rate("20/hour", "Wrong invitation codes, per address."),
    "invite_mail": Rate("20/day", "Letters with invitations, per member."),
    "invite_address": Rate("3/day", "Letters with invitations to one address, from all members. More are not sent."),
    "login": Rate("10/minute", "Logins, per address and name."),
    "login_address": Rate("300/hour", "Logins, per address, for all names."),
    "login_name": Rate("100/hour", "Logins, per name, from all addresses. Browsers known to its owner count apart."),
    "login_devices": Rate("50/hour", "Logins, per name, from all browsers known to its owner."),
    "app": Rate("60/hour", "Apps that register, per address."),
    "app_network": Rate("300/hour", "Apps that register, per network: the /24 of an IPv4 address, the /48 of IPv6."),
    "password": Rate("10/hour", "Signed-in users who are asked for their password again."),
    "login_code": Rate("20/hour", "Codes of second factors at sign-in, per name. Each known browser counts apart."),
    "email": Rate("10/hour", "E-mail addresses that a user adds, and codes that they try."),
    "reset": Rate("20/hour", "Letters to reset a password, and tries of their links, per network address."),
    "reset_name": Rate("5/hour", "Letters to reset a password, per account."),
    "mail": Rate("10/minute", "Letters to one address. More wait."),
    "export": Rate("5/hour", "Downloads of one's own data."),
    "publish": Rate("60/minute", "Posts, replies and reposts."),
    "strangers": Rate(
        "30/day", "People whom a member writes to privately, who neither follow nor wrote to the member."
    ),
    "upload": Rate("60/minute", "Pictures and videos."),
    "write": Rate("300/minute", "Other changes."),
    "search": Rate("60/minute", "Searches."),
    "read": Rate("1200/minute", "Other reads."),
    "resume": Rate("30/minute", "Streams that continue after an event. Beyond it a client has to load its page again."),
    "played": Rate("6000/minute", "Plays, issued items and questions about them. Services need many."),
    "played_ids": Rate("20000/day", "Ids of plays that are reported for one user."),
    "discover": Rate("120/minute", "Pages of Discover."),
    "report": Rate("30/hour", "Reports."),
    "live": Rate("60/minute", "Changes of live sessions."),
}


@lru_cache
def parse_rate(text: str) -> tuple[int, int]:
    """Calls and seconds of `20/hour`. Raises ValueError."""
    calls, _, period = text.partition("/")
    if not re.fullmatch(r"0*[1-9][0-9]{0,9}", calls) or period not in PERIODS:
        raise ValueError
    return int(calls), PERIODS[period]
