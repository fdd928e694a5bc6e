"""Changes the site's description and rules."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.about.models import Rule, SiteSettings
from accounts.about.site import RULES, site_copy


@transaction.atomic
def change_settings(**fields: Any) -> SiteSettings:
    """Write these columns of the one row. Raises ValidationError by field."""
    row = SiteSettings.objects.select_for_update().filter(pk=1).first() or SiteSettings()
    for name, value in fields.items():
        setattr(row, name, value)
    row.clean_fields(exclude={field.name for field in SiteSettings._meta.fields} - set(fields))
    columns = {name: getattr(row, name) for name in fields}
    SiteSettings.objects.bulk_create([SiteSettings()], ignore_conflicts=True)
    SiteSettings.objects.filter(pk=1).update(**columns, changed_at=Now())
    transaction.on_commit(site_copy.forget)
    return row


def store_counts(*, users: int, active: int, items: int) -> None:
    """Store approximate counts. `active`: seen within a month."""
    SiteSettings.objects.bulk_create([SiteSettings()], ignore_conflicts=True)
    SiteSettings.objects.filter(pk=1).update(user_count=users, active_count=active, item_count=items)


@transaction.atomic
def save_rule(*, rule: Rule) -> Rule:
    """Create or change a rule. Raises ValidationError."""
    rule.full_clean()
    rule.save()
    if Rule.objects.filter(withdrawn_at=None).count() > RULES:
        raise ValidationError(_("At most %(count)d rules.") % {"count": RULES})
    transaction.on_commit(site_copy.forget)
    return rule


@transaction.atomic
def withdraw_rule(*, rule_id: int) -> bool:
    """Withdraw a rule. Reports keep naming it. False if it was withdrawn already."""
    transaction.on_commit(site_copy.forget)
    return bool(Rule.objects.filter(pk=rule_id, withdrawn_at=None).update(withdrawn_at=timezone.now()))
