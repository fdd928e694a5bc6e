"""The site's rates. `FEEDSITE_RATES` overrides them."""

import re
from functools import lru_cache
from typing import NamedTuple

PERIODS = {"second": 1, "minute": 60, "ten-minutes": 600, "hour": 3600, "day": 86_400}


class Rate(NamedTuple):
    """A rate's default, and what it counts."""

    default: str
    text: str


RATES = {
    "attempt": Rate("300/minute", "Requests with unknown tokens or sessions, per address."),
    "signup": Rate("20/hour", "Sign-ups, per address."),
    "signup_day": Rate("50/day", "Sign-ups, per address and day."),
    "signup_network": Rate("200/day", "Sign-ups, per network (IPv4 /24, IPv6 /48)."),
    "invite": Rate("20/hour", "Wrong invitation codes, per address."),
    "invite_mail": Rate("20/day", "Letters with invitations, per member."),
    "invite_address": Rate("3/day", "Letters with invitations to one address. The rest is not sent."),
    "login": Rate("10/minute", "Logins, per address and name."),
    "login_address": Rate("300/hour", "Logins, per address, for all names."),
    "login_name": Rate("100/hour", "Logins, per name, from all addresses. The owner's known browsers count apart."),
    "login_devices": Rate("50/hour", "Logins, per name, from the owner's known browsers."),
    "app": Rate("60/hour", "Apps that register, per address."),
    "app_network": Rate("300/hour", "Apps that register, per network (IPv4 /24, IPv6 /48)."),
    "password": Rate("10/hour", "Password checks of signed-in users, before a risky step."),
    "login_code": Rate("20/hour", "Codes of second factors at login, per name. Each known browser counts separately."),
    "email": Rate("10/hour", "E-mail addresses that a user adds, and tries to confirm them."),
    "reset": Rate("20/hour", "Password reset letters, and tries of their links, per address."),
    "reset_name": Rate("5/hour", "Password reset letters, per account."),
    "mail": Rate("10/minute", "Letters to one address. The rest wait."),
    "export": Rate("5/hour", "Downloads of a member's own data."),
    "publish": Rate("60/minute", "Posts, replies and reposts."),
    "strangers": Rate("30/day", "Strangers to whom a member writes privately: they neither follow nor wrote."),
    "upload": Rate("60/minute", "Pictures and videos."),
    "write": Rate("300/minute", "Other changes."),
    "search": Rate("60/minute", "Searches."),
    "read": Rate("1200/minute", "Other reads."),
    "resume": Rate("30/minute", "Streams that continue after a lost connection. Then a client reloads."),
    "played": Rate("6000/minute", "Requests about plays and issued items. Services need many."),
    "played_ids": Rate("20000/day", "Plays reported for one user."),
    "discover": Rate("120/minute", "Pages of Discover."),
    "report": Rate("30/hour", "Reports."),
    "appeal": Rate("10/day", "Appeals against decisions of moderators, per member."),
    "outside_member": Rate("10000/ten-minutes", "Milliseconds of background work for one member's links and devices."),
    "outside_archives": Rate("300000/hour", "Milliseconds of work for one member's archives. Then they wait."),
    "outside_host": Rate("300000/hour", "Milliseconds of waiting for one host; the first 500 of a request are free."),
    "push_test": Rate("5/hour", "Tests of devices with push messages, per member."),
    "live": Rate("60/minute", "Changes of live sessions."),
}


@lru_cache
def parse_rate(text: str) -> tuple[int, int]:
    """Parse a rate such as `20/hour` into calls and seconds. Raises ValueError."""
    calls, _, period = text.partition("/")
    if not re.fullmatch(r"0*[1-9][0-9]{0,9}", calls) or period not in PERIODS:
        raise ValueError
    return int(calls), PERIODS[period]
