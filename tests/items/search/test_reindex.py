from io import StringIO

import pytest
from django.core.management import call_command

from accounts.models import User
from items.models import ItemDocument, ItemTag
from tests.support.factories import ItemFactory, UserFactory


@pytest.mark.django_db
def test_reindex_says_how_many() -> None:
    ItemFactory.create(content={"text": "words #tag"})
    out = StringIO()
    call_command("reindex", stdout=out)
    assert out.getvalue() == "Indexed 1 items.\n"
    assert ItemDocument.objects.get().document == "'tag':2 'words':1"
    assert ItemTag.objects.get().tag == "tag"


@pytest.mark.django_db
def test_reindex_folds_names_as_searches_are() -> None:
    user: User = UserFactory.create(display_name="カキ")
    User.objects.filter(pk=user.pk).update(folded_name="as it was folded before")
    assert not User.objects.called("かき")
    call_command("reindex", stdout=StringIO())
    assert User.objects.called("かき").get() == user
