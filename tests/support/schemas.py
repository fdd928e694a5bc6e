import json
from typing import Any

import jsonschema_rs


def allowed(schema: dict[str, Any], path: str, method: str, response: Any) -> None:
    described = schema["paths"][f"/api/v1{path}"][method]["responses"][str(response.status_code)]
    if "content" not in described:
        assert not response.content
        return
    if "application/zip" in described["content"]:
        assert response["Content-Type"] == "application/zip"
        assert b"".join(response.streaming_content).startswith(b"PK")
        return
    document = {"components": schema["components"], **described["content"]["application/json"]["schema"]}
    jsonschema_rs.Draft202012Validator(document).validate(json.loads(response.content))
