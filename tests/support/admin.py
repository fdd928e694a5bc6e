from typing import Any

from django.test import Client


def act(admin_client: Client, url: str, action: str, *rows: Any, **more: str) -> Any:
    data = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return admin_client.post(url, data, follow=True)


def text(response: Any) -> str:
    assert response.status_code == 200
    return str(response.content.decode())
