"""The OpenAPI schema of the API, from msgspec structs (outgoing) and DRF serializers (incoming).

See docs/decisions.md: Own code in place of a library.
"""

from functools import cache
from typing import Any, Literal

import msgspec
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from web.rest import BODY_METHODS, NUMBER, ApiView, Problem

REFERENCE = "#/components/schemas/{name}"
FAULTS = "FieldProblems"
FAULTS_REFERENCE = {"$ref": REFERENCE.format(name=FAULTS)}
FIELD_PROBLEMS = {"anyOf": [{"$ref": REFERENCE.format(name="Problem")}, FAULTS_REFERENCE]}
FAULTS_SHAPE = {
    "type": "object",
    "description": "The faults of each field, or of the parts of one: of an object by name, of a list by place from 0.",
    "additionalProperties": {"anyOf": [{"type": "array", "items": {"type": "string"}}, FAULTS_REFERENCE]},
}

EMPTY_BODY = {"application/json": {"type": "object", "maxProperties": 0}}
"""The body of a call without fields."""
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "maxLength": 255, "pattern": "^[!-~]*$"},
    OpenApiParameter.HEADER,
    description="The client's name for this call: repeated, it gets what the first made. An empty one counts as none.",
)


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes API tokens in the OpenAPI document."""

    target_class = "accounts.signing_in.tokens.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """The description of the header."""
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token …`, as POST /auth/token gives it.",
        }


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes apps' tokens in the OpenAPI document."""

    target_class = "clientapi.oauth.bearer.BearerAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """The description of the header."""
        return {"type": "http", "scheme": "bearer", "description": "An app's token, which opens what its scopes say."}


class StructSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Describes msgspec structs in the OpenAPI document."""

    target_class = "msgspec.Struct"
    match_subclasses = True

    def get_name(self, auto_schema: AutoSchema, direction: Any) -> str:
        """The struct's name."""
        return str(self.target.__name__)

    def get_identity(self, auto_schema: AutoSchema, direction: Any) -> str:
        """The name by which the struct's schema is registered."""
        return str(self.target.__name__)

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        """The struct's schema. Structs inside it become components."""
        _, components = msgspec.json.schema_components([self.target], ref_template=REFERENCE)
        own: dict[str, Any] = components.pop(self.target.__name__)
        for name, schema in components.items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name, ResolvedComponent.SCHEMA, schema=schema, object=name
            )
            auto_schema.registry.register_on_missing(component)
        return own


class StrictShape(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Describes bodies that refuse unknown fields."""

    target_class = "web.rest.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        """The serializer's schema without additional fields."""
        shape: dict[str, Any] = auto_schema._map_serializer(  # type: ignore[no-untyped-call]
            self.target, direction, bypass_extensions=True
        )
        return {**shape, "additionalProperties": False}


class IdShape(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Describes ids in the OpenAPI document."""

    target_class = "web.rest.IdField"

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        """The schema of an id: a decimal string."""
        return {"type": "string", "pattern": f"^{NUMBER.pattern}$"}


def without_slash(endpoints: list[Any]) -> list[Any]:
    """Leave out the second addresses of apps, with a slash at the end."""
    return [one for one in endpoints if not one[0].endswith("/")]


def empty_is_absent(result: Any, **options: Any) -> Any:
    """Allow integers in queries to be empty. Called with the whole document."""
    for methods in result["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query" and parameter["schema"].get("type") == "integer":
                    parameter["allowEmptyValue"] = True
    return result


class Schema(AutoSchema):
    """Adds pages of lists (`pages_of`), and possible errors to each operation."""

    view: ApiView  # type: ignore[override]  # every view in the document is one

    def _is_paged(self) -> bool:
        return self.method == "GET" and self.view.pages_of is not None

    def _get_pagination_parameters(self) -> list[dict[str, Any]]:
        return self.view.pagination_class().get_schema_operation_parameters(self.view) if self._is_paged() else []

    def get_response_serializers(self) -> Any:
        """The page of the list, where the operation names no answers."""
        return self.view.pages_of if self._is_paged() else super().get_response_serializers()

    def get_tags(self) -> list[str]:
        """The tag of an operation: the first part of its path."""
        return [self.path.removeprefix("/api/v1/").partition("/")[0]]

    def _get_response_bodies(self, direction: Literal["request", "response"] = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        self.registry.register_on_missing(
            ResolvedComponent(  # type: ignore[no-untyped-call]
                FAULTS, ResolvedComponent.SCHEMA, schema=FAULTS_SHAPE, object=FAULTS
            )
        )
        for status, (shape, description) in self._errors().items():
            if str(status) not in bodies:
                response = OpenApiResponse(shape, description)
                bodies[str(status)] = self._get_response_for_code(  # type: ignore[no-untyped-call]
                    response, str(status)
                )
        return bodies

    def _errors(self) -> dict[int, tuple[Any, str]]:
        errors: dict[int, tuple[Any, str]] = {
            400: (FIELD_PROBLEMS, "Something in the request is wrong."),
            405: (Problem, "Wrong method."),
        }
        writes = self.method not in ("GET", "HEAD")
        if self.view.get_authenticators():
            errors[401] = (Problem, "No token or session, or a bad one.")
            if writes:
                errors[403] = (Problem, "Not yours to change, or a session without its CSRF token.")
        if "{" in self.path:
            errors[404] = (Problem, "Not there, or not for you to see.")
        has_files = self.method in self.view.takes_files
        if has_files:
            errors[415] = (FIELD_PROBLEMS, "Not a form, or a file of a kind that is not taken.")
            errors[413] = (FIELD_PROBLEMS, "The file has too many bytes, pixels or frames.")
        else:
            if self.method in BODY_METHODS or self.method in self.view.takes_bodies:
                errors[415] = (Problem, "Not JSON.")
            errors[413] = (Problem, f"More than {self.view.body_bytes // 1024} KiB.")
        errors[429] = (Problem, "Too many calls; Retry-After says how many seconds to wait.")
        errors[503] = (Problem, "An outage; Retry-After says how many seconds to wait.")
        return errors


@cache
def document() -> bytes:
    """The OpenAPI document as JSON, the same for all callers."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    rendered: bytes = OpenApiJsonRenderer().render(schema, renderer_context={})
    return rendered


@csrf_exempt
@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """The OpenAPI description of the API."""
    return HttpResponse(document(), content_type="application/vnd.oai.openapi+json")
