import pytest
from playwright.sync_api import expect

from items import actions
from tests.support.browsers import Visit
from tests.support.factories import UserFactory

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_from_the_field_beside_every_page_and_the_tab_of_a_phone(visit: Visit, javascript: bool) -> None:
    sender = UserFactory.create()
    actions.publish(sender=sender, content={"text": "apple pie"})
    wide = visit(java_script_enabled=javascript)
    wide.log_in(sender)
    wide.page.get_by_label("Search posts and people").fill("pie")
    wide.page.get_by_label("Search posts and people").press("Enter")
    expect(wide.page.locator("article mark")).to_have_text("pie")
    phone = visit(java_script_enabled=javascript, viewport={"width": 390, "height": 800})
    phone.log_in(sender)
    expect(phone.page.get_by_label("Search posts and people")).to_be_hidden()
    phone.page.get_by_role("link", name="Search").click()
    expect(phone.page.get_by_label("Search posts and people")).to_be_focused()
    phone.page.get_by_label("Search posts and people").fill("nothing of the kind")
    phone.page.get_by_label("Search posts and people").press("Enter")
    expect(phone.page.get_by_text("No results for “nothing of the kind”. Try other words.")).to_be_visible()
