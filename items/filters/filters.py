"""Filters: phrases that a reader wants to hide or be warned of. They never change which items a page has.

A phrase is searched in title, text, warning, media descriptions and link card, also of a repost's original and a quoted
item. "cat" as a whole word is not in "category"; scripts without spaces have no such borders.

`User.filters_version` changes with every change and is 0 without filters, which then cost no statement.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from django.contrib.auth.models import AnonymousUser
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from items.bodies import ItemBody
from items.filters.matching import Matcher, Word, fold
from items.models import Context, Filter, FilterAction
from items.text import poll_options
from storage.connections import fetch, id_array
from storage.events import FiltersChanged, announce
from web.letters import is_blank
from web.refusals import ConflictError, RefusalError

TITLE_LENGTH = 100
FILTERS = 100
"""Most phrases of a user's filters."""
STRENGTH = (FilterAction.BLUR, FilterAction.WARN, FilterAction.HIDE)
"""Of several matching filters the strongest acts."""
COMPILED = 128
"""Readers with compiled filters kept in a process. The largest take about 1 MB."""
FORGOTTEN = 500
"""Users whose expired filters one run of the task deletes."""
UNFOLDING, SIGNS = re.compile("[\u3300-\u3357\u337b-\u337f\ufdf0-\ufdfb]"), 500
"""Characters that expand to as many as 18 letters, which is slow. A text with more of them is searched without them."""
APART = "\x00"
"""Separates the parts of an item, so that no phrase matches across them. No text contains it."""


class FilterCapError(ConflictError):
    """The user would have more than `FILTERS` phrases."""


class NothingToFindError(RefusalError, ValueError):
    """The phrase contains only spaces and invisible characters."""

    field = "phrase"
    sentence = "It holds nothing to find."


# OFFSET 0: one index probe per owner.
RENEW = """
    UPDATE accounts_user u SET filters_version = CASE
        WHEN EXISTS (SELECT FROM items_filter f WHERE f.owner_id = u.id OFFSET 0) THEN feedsite_draw() ELSE 0 END
    WHERE u.id = ANY(%s)
"""


# --- Verbs -----------------------------------------------------------------------------------------------
class Keyword(NamedTuple):
    """A phrase of a filter."""

    phrase: str
    whole_word: bool
    id: int = 0
    """The id of the phrase's row. 0 for a new one."""


@transaction.atomic
def create(
    *,
    owner: User,
    phrase: str = "",
    whole_word: bool = True,
    keywords: Sequence[Keyword] = (),
    action: str = FilterAction.WARN,
    expires_at: datetime | None = None,
    contexts: Collection[str] = (),
    title: str = "",
) -> Filter:
    """Add a filter. `contexts` empty: everywhere. Raises FilterCapError and NothingToFindError."""
    first, *others = keywords or [Keyword(phrase, whole_word)]
    _lock_owners([owner.pk])
    shared = {"action": action, "expires_at": expires_at, "contexts": _contexts(contexts), "title": title}
    made = _add(owner, first, shared)
    for one in others:
        _add(owner, one, shared | {"group": made.pk})
    _renew_versions([owner.pk])
    return made


@transaction.atomic
def change(
    *,
    owner: User,
    filter_id: int,
    phrase: str | None = None,
    whole_word: bool | None = None,
    keywords: Sequence[Keyword] | None = None,
    read: Collection[Keyword] | None = None,
    **fields: Any,
) -> None:
    """Change some fields, the first phrase, or all keywords.

    `keywords`: those with an id change, those without are new, others go. What was added or deleted since `read` stays
    so. Raises Filter.DoesNotExist, FilterCapError and NothingToFindError.
    """
    _lock_owners([owner.pk])
    rows = _rows_of_filter(owner, filter_id)
    if "contexts" in fields:
        fields["contexts"] = _contexts(fields["contexts"])
    if fields:
        Filter.objects.filter(pk__in=rows).update(**fields)
    if keywords is None and (phrase, whole_word) != (None, None):
        first, *others = rows.values()
        said = Keyword(first.phrase if phrase is None else phrase, first.whole_word, first.pk)
        said = said if whole_word is None else said._replace(whole_word=whole_word)
        keywords = [said, *(Keyword(row.phrase, row.whole_word, row.pk) for row in others)]
    if keywords is not None:
        _replace(owner, filter_id, keywords, None if read is None else {one.id for one in read})
    _renew_versions([owner.pk])


@transaction.atomic
def delete(*, owner: User, filter_id: int) -> None:
    """Delete a filter. Raises Filter.DoesNotExist."""
    _lock_owners([owner.pk])
    Filter.objects.filter(pk__in=_rows_of_filter(owner, filter_id)).delete()
    _renew_versions([owner.pk])


def _rows_of_filter(owner: User, filter_id: int) -> dict[int, Filter]:
    """The rows of the owner's filter by id, oldest first. Raises Filter.DoesNotExist."""
    own = Filter.objects.filter(Q(group=filter_id) | Q(pk=filter_id, group=None), owner=owner).order_by("pk")
    rows = {row.pk: row for row in own}
    if not rows:
        raise Filter.DoesNotExist
    return rows


def _add(owner: User, keyword: Keyword, fields: dict[str, Any]) -> Filter:
    _check_phrase(keyword.phrase)
    if Filter.objects.filter(owner=owner).count() >= FILTERS:
        raise FilterCapError(f"You can have up to {FILTERS} filters.")
    return Filter.objects.create(owner=owner, phrase=keyword.phrase, whole_word=keyword.whole_word, **fields)


def _replace(owner: User, filter_id: int, keywords: Sequence[Keyword], read: Collection[int] | None) -> None:
    rows = _rows_of_filter(owner, filter_id)
    kept = {one.id: one for one in keywords if one.id in rows}
    new = [one for one in keywords if one.id not in rows and one.id not in (read or ())]
    if not keywords:
        raise NothingToFindError
    for number, one in kept.items():
        _check_phrase(one.phrase)
        Filter.objects.filter(pk=number).update(phrase=one.phrase, whole_word=one.whole_word)
    shared = {name: getattr(next(iter(rows.values())), name) for name in ("action", "expires_at", "contexts", "title")}
    Filter.objects.filter(pk__in=(rows.keys() if read is None else rows.keys() & read) - kept.keys()).delete()
    for one in new:
        _add(owner, one, shared | {"group": filter_id})


def _contexts(given: Collection[str]) -> list[str]:
    """The known contexts in order. All of them are stored as none, because a later version may add some."""
    chosen = [context.value for context in Context if context in given]
    return [] if len(chosen) == len(Context) else chosen


@transaction.atomic
def forget_expired() -> int:
    """Delete the expired filters of some users. Returns their number."""
    expired = Filter.objects.filter(expires_at__lte=timezone.now())
    owners = set(expired.order_by("expires_at").values_list("owner_id", flat=True)[:FORGOTTEN])
    if not owners:
        return 0
    _lock_owners(owners)
    gone, _ = expired.filter(owner__in=owners).delete()
    _renew_versions(owners)
    return gone


def _check_phrase(phrase: str) -> None:
    if is_blank(phrase) or not fold(phrase):
        raise NothingToFindError


def _lock_owners(owner_ids: Iterable[int]) -> None:
    """Lock the owners' rows in order, so that versions follow changes and the cap holds."""
    rows = User.objects.filter(pk__in=owner_ids).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))


def _renew_versions(owner_ids: Iterable[int]) -> None:
    """Draw new filter versions for these owners, who are locked, and announce it after the commit."""
    owners = list(owner_ids)
    with connection.cursor() as cursor:
        cursor.execute(RENEW, [owners])
    transaction.on_commit(lambda: announce(*map(FiltersChanged, owners)), robust=True)


class OwnedFilter(NamedTuple):
    """A filter as its owner manages it."""

    id: int
    title: str
    keywords: list[Keyword]
    contexts: list[str]
    """Where the filter applies. All contexts if it applies everywhere."""
    action: str
    expires_at: datetime | None
    created_at: datetime

    @property
    def phrase(self) -> str:
        """The first phrase."""
        return self.keywords[0].phrase

    @property
    def whole_word(self) -> bool:
        """Whether the first phrase is found as a whole word only."""
        return self.keywords[0].whole_word

    @property
    def phrases(self) -> list[str]:
        return [one.phrase for one in self.keywords]

    @property
    def has_expired(self) -> bool:
        """Whether it no longer matches anything."""
        return self.expires_at is not None and self.expires_at <= timezone.now()


def filters_of(owner: User) -> list[OwnedFilter]:
    """The owner's filters, newest first."""
    groups: dict[int, list[Filter]] = {}
    for row in Filter.objects.filter(owner=owner).order_by("pk"):
        groups.setdefault(row.group or row.pk, []).append(row)
    listed = [
        OwnedFilter(
            filter_id,
            rows[0].title or rows[0].phrase,
            [Keyword(row.phrase, row.whole_word, row.pk) for row in rows],
            rows[0].contexts or [context.value for context in Context],
            rows[0].action,
            rows[0].expires_at,
            rows[0].created_at,
        )
        for filter_id, rows in groups.items()
    ]
    return sorted(listed, key=lambda one: -one.id)


def own_filter(owner: User, filter_id: int) -> OwnedFilter:
    """One of the owner's filters. Raises Filter.DoesNotExist."""
    for one in filters_of(owner):
        if one.id == filter_id:
            return one
    raise Filter.DoesNotExist


# --- Reading ---------------------------------------------------------------------------------------------
READ = """
    SELECT owner_id, id, phrase, whole_word, action, expires_at, contexts, coalesce("group", id), title
    FROM items_filter
    WHERE owner_id = ANY(%(owners)s::bigint[]) ORDER BY id
"""


class FilterRule(NamedTuple):
    """A phrase as matching uses it."""

    owner: int
    id: int
    phrase: str
    whole_word: bool
    action: FilterAction
    expires_at: datetime | None
    contexts: Sequence[str] = ()
    group: int = 0
    """The filter's id."""
    title: str = ""

    def is_in_force(self, now: datetime) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or self.expires_at > now

    def applies(self, context: str) -> bool:
        """Whether the phrase applies in a context. "": anywhere."""
        return not context or not self.contexts or context in self.contexts


def rules_of(owner_ids: Iterable[int]) -> list[FilterRule]:
    """The filters of these users, oldest first."""
    return fetch(READ, {"owners": id_array(owner_ids)}, into=FilterRule._make)


class Filters:
    """Compiled filters. Immutable, so threads may share them."""

    def __init__(self, rules: Iterable[FilterRule]) -> None:
        self.rules = {rule.id: rule for rule in rules}
        self._matcher = Matcher(Word(rule.id, fold(rule.phrase), rule.whole_word) for rule in self.rules.values())

    def found(self, text: str, now: datetime) -> list[FilterRule]:
        """The active filters that match a folded text, oldest first."""
        rules = (self.rules[rule_id] for rule_id in sorted(self._matcher.matching_ids(text)))
        return [rule for rule in rules if rule.is_in_force(now)]


@lru_cache(COMPILED)
def _compiled(owner_id: int, version: int) -> Filters:
    """A user's compiled filters. They may be newer than `version`. Then they are loaded again under the newer one."""
    return Filters(rules_of([owner_id]))


def compiled_rules(reader: User) -> Iterable[FilterRule]:
    """All the reader's phrases, oldest first."""
    return _compiled(reader.pk, reader.filters_version).rules.values()


def apply_filters(items: list[ItemBody], reader: User | AnonymousUser, context: str = "") -> list[ItemBody]:
    """Add to each item the reader's matching filters and their action. Returns the items."""
    version = reader.filters_version if isinstance(reader, User) else 0
    if not version or not items:
        return items
    filters, now, own = _compiled(reader.pk, version), timezone.now(), str(reader.pk)
    for item in items:
        shown = item.shown
        if shown.sender.id == own:
            continue
        found = [rule for rule in filters.found(folded_text(shown, own), now) if rule.applies(context)]
        if found:
            action = max((rule.action for rule in found), key=STRENGTH.index)
            for one in (item, shown):
                one.filtered = list(dict.fromkeys(rule.phrase for rule in found))
                one.filter_action = str(action)
    return items


def folded_text(item: ItemBody, reader_id: str = "") -> str:
    """The folded text to match, with that of a quoted item unless it is the reader's."""
    quoted = item.quote.item if item.quote else None
    return folded(chain(_text_parts(item), _text_parts(quoted) if quoted and quoted.sender.id != reader_id else ()))


def folded(parts: Iterable[str]) -> str:
    """The parts of an item as one folded text."""
    return APART.join(fold(_without_excess_signs(part)) for part in parts if part)


def _without_excess_signs(text: str) -> str:
    return UNFOLDING.sub(" ", text) if len(UNFOLDING.findall(text)) > SIGNS else text


def _text_parts(item: ItemBody) -> Iterator[str]:
    yield item.title
    content = item.content_fields
    for name in ("text", "warning"):
        if isinstance(part := content.get(name), str):
            yield part
    yield from poll_options(content)
    yield from (medium.description for medium in item.media)
    if item.link_card:
        yield item.link_card.title
        yield item.link_card.description
