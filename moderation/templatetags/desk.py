from django import template

from accounts.people import badge_of, full_name_of
from items.pages.reading import excerpt

register = template.Library()
register.simple_tag(full_name_of)
register.simple_tag(badge_of)
register.filter(excerpt)
