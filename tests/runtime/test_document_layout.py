from django.conf import settings

from runtime.management.commands.document_layout import PAGE, drawn_into


def test_the_page_shows_the_layers_of_now() -> None:
    page = (settings.BASE_DIR / PAGE).read_text()
    assert drawn_into(page) == page, "run `manage.py document_layout`"
