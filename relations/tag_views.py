from django.contrib import messages
from django.http import HttpResponse
from django.utils.translation import gettext as _

from accounts.access import member_act
from accounts.models import User
from relations.tags import TagCapError, follow_tag, unfollow_tag
from web.hashtags import known_tag
from web.pages import PageRequest, redirect_next

VERBS = {"follow": follow_tag, "unfollow": unfollow_tag}


@member_act
def relate_tag(request: PageRequest, reader: User, name: str, verb: str) -> HttpResponse:
    """Follow or unfollow a hashtag."""
    tag = known_tag(name)
    try:
        VERBS[verb](user=reader, tag=tag)
    except TagCapError:
        messages.error(request, _("You've reached the limit of followed hashtags. Unfollow one first."))
    return redirect_next(request, "tag", tag)
