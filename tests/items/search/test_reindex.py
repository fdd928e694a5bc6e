from io import StringIO

import pytest
from django.core.management import call_command

from items.models import ItemDocument, ItemTag
from tests.support.factories import ItemFactory


@pytest.mark.django_db
def test_reindex_says_how_many() -> None:
    ItemFactory.create(content={"text": "words #tag"})
    out = StringIO()
    call_command("reindex", stdout=out)
    assert out.getvalue() == "Indexed 1 items.\n"
    assert ItemDocument.objects.get().document == "'tag':2 'words':1"
    assert ItemTag.objects.get().tag == "tag"
