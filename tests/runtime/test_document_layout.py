from django.conf import settings

from runtime.management.commands.document_layout import PAGE, replace_table


def test_the_page_shows_the_layers_of_now() -> None:
    page = (settings.BASE_DIR / PAGE).read_text()
    assert replace_table(page) == page, "run `manage.py document_layout`"
