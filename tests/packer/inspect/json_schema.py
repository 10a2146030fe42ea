"""Check JSON against a schema: the few words of draft 2020-12 that ours uses, and strictly.

Strictly means that a property which the schema does not name is a fault: the output is
published.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    *("$schema", "$defs", "title", "description", "type", "properties", "required", "items"),
    *("additionalProperties", "anyOf", "enum", "const", "$ref", "minItems", "maxItems"),
}


def faults(
    value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$"
) -> Iterator[str]:
    """Say where a value breaks a schema."""
    assert schema.keys() <= _KNOWN, schema.keys() - _KNOWN
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if "anyOf" in schema and all(any(faults(value, one, root, at)) for one in schema["anyOf"]):
        yield f"{at}: {value!r} is not of its kinds"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r}, expected {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r}, expected one of {schema['enum']}"
    if "type" in schema:
        yield from _of_type(value, schema, root, at)


def _of_type(value: Any, schema: Schema, root: Schema, at: str) -> Iterator[str]:
    kinds = _TYPES[schema["type"]]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        yield f"{at}: {value!r}, expected {schema['type']}"
    elif isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at}.{name}: missing"
        for name, item in value.items():
            more = schema.get("additionalProperties")
            wanted = schema.get("properties", {}).get(name, more)
            if wanted is True:
                continue  # a table of the user
            if wanted is None:
                yield f"{at}.{name}: is not in the schema"
            else:
                yield from faults(item, wanted, root, f"{at}.{name}")
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{at}: {len(value)} items"
        for index, item in enumerate(value):
            yield from faults(item, schema["items"], root, f"{at}[{index}]")
