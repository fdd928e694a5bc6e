from typing import Any

from django.test import Client

SITE_FORM = {
    "name": "Reading room",
    "short_description": "Books, slowly.",
    "description": "We read.",
    "contact_email": "",
    "contact_username": "",
    "accent": "#b3261e",
    "looking": "everybody",
    "sign_up": "approval",
    "language": "",
    "time_zone": "Asia/Shanghai",
    "announcement": "Closed on Monday.",
    "announcement_until": "2030-05-01T20:00",
}
"""What the form of the site's settings sends."""


def act(admin_client: Client, url: str, action: str, *rows: Any, **more: str) -> Any:
    data = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return admin_client.post(url, data, follow=True)


def text(response: Any) -> str:
    assert response.status_code == 200
    return str(response.content.decode())
