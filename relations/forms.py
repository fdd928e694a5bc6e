"""The forms of relations: a list, and the lists that a person is in."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from relations.lists import Listed
from relations.models import List


class ListForm(forms.Form):
    """The title of a list, and whether its members leave home."""

    title = forms.CharField(
        label=_("Title"),
        max_length=List._meta.get_field("title").max_length,
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )
    exclusive = forms.BooleanField(
        label=_("Hide posts of its members from home"),
        required=False,
        help_text=_("They are still followed, and their posts are in the list."),
    )


class MembershipForm(forms.Form):
    """The reader's lists, with marks at those that a person is in."""

    lists = forms.MultipleChoiceField(label=_("Lists"), required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, there: Sequence[Listed], data: Any = None) -> None:
        super().__init__(data, initial={"lists": [str(one.id) for one in there if one.has_person]})
        self.fields["lists"].choices = [(str(one.id), one.title) for one in there]  # type: ignore[attr-defined]
