"""Moderators' verbs about link cards. Each writes the log."""

from django.db import transaction

from accounts import review
from accounts.models import User
from items.link_cards import actions as link_cards
from items.models import Item, LinkCard, RefusedHost
from moderation.log import log_decision
from moderation.models import Verb


@transaction.atomic
def remove_card(*, card: LinkCard, by: User, item: Item | None = None, note: str = "") -> bool:
    """Remove a link card for good, from all posts with its link. `item`: the post that led to it. False if it was
    removed before. Raises JudgeError.
    """
    review.check_judge(item.sender if item else None, by)
    if not link_cards.remove(card=card):
        return False
    log_decision(by, Verb.UNCARD, item=item, note=note, after={"link": card.url})
    return True


@transaction.atomic
def refuse_host(*, host: RefusedHost, by: User) -> None:
    """Show no link cards of a host and below."""
    link_cards.refuse_host(host=host)
    log_decision(by, Verb.REFUSE, note=host.host, after={"note": host.note})


@transaction.atomic
def accept_host(*, host: RefusedHost, by: User) -> None:
    """Show link cards of a host again, for later links."""
    log_decision(by, Verb.ACCEPT, note=host.host)
    host.delete()
