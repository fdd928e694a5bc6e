"""Items and live sessions of cases in one form (accounts.review.Subject)."""

from django.urls import reverse
from django.utils.translation import gettext

from accounts import review
from accounts.models import User
from accounts.people import profile_address
from accounts.review import Subject
from items import actions as items
from items.content import text_in
from items.models import Item
from moderation.models import Case


def subject_of(case: Case) -> Subject | None:
    """A case's subject, or None if it is gone."""
    if case.item_id is None and case.session_id is None:
        return of_account(case.host) if case.host else None
    if case.item_id is None:
        return review.sessions.find([case.session_id]).get(case.session_id) if case.session_id else None
    return of_item(Item.objects.select_related("sender").get(pk=case.item_id))


def lock(item_id: int | None, session_id: int | None) -> Subject | None:
    """An item or live session, locked. None if gone."""
    if item_id is None:
        return review.sessions.lock(session_id) if session_id else None
    rows = Item.objects.select_for_update(no_key=True, of=("self",)).select_related("sender")
    item = rows.filter(pk=item_id).first()
    return of_item(item) if item else None


def set_review_status(case: Case, status: str) -> bool:
    """Publish, reject or hold a case's item or session. False if nothing changed."""
    if case.item_id is None:
        return case.session_id is not None and review.sessions.judge(case.session_id, status)
    item = Item(pk=case.item_id)
    if status == review.ReviewStatus.IN_REVIEW:
        return items.hold(item=item, reasons=[])
    return items.approve(item=item) if status == review.ReviewStatus.PUBLISHED else items.reject(item=item)


def of_account(user: User) -> Subject:
    """An account as a subject: what its profile says."""
    fields = [f"{field['name']}: {field['value']}" for field in user.profile_fields]
    return Subject(
        id=user.pk,
        author=user,
        kind=gettext("account"),
        title=user.display_name,
        text="\n".join([user.bio, *fields]),
        url="",
        status=review.ReviewStatus.PUBLISHED if user.is_active else review.ReviewStatus.DELETED,
        created_at=user.date_joined,
        modified_at=user.date_joined,
        address=profile_address(user.username),
    )


def of_item(item: Item) -> Subject:
    warning = text_in(item.content, "warning")
    words = [gettext("Warning: %(words)s") % {"words": warning}] if warning else []
    return Subject(
        id=item.pk,
        author=item.sender,
        kind=f"{item.get_type_display()}, {item.get_visibility_display()}",
        title=item.title,
        text="\n".join([*words, item.text]),
        url=text_in(item.content, "url"),
        status=item.status,
        created_at=item.created_at,
        modified_at=item.modified_at,
        address=reverse("item", args=[item.pk]),
    )
