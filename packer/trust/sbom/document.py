"""The bill of materials as CycloneDX 1.6, by cyclonedx-python-lib, without time and chance."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import runtime
from runtime.error import ExportError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .facts import Part

_PREFIX = "dso-packer:"
_NAMESPACE = uuid5(NAMESPACE_URL, "https://dso-packer/sbom")
_TYPES = {
    "source": "file",
    "object": "file",
    "archive": "library",
    "library": "library",
    "kernels": "file",
    "weights": "data",
    "module": "data",
}


def require_cyclonedx() -> None:
    """Refuse to continue without the package.

    Raises ExportError if it is missing.
    """
    try:
        import cyclonedx  # noqa: F401
    except ImportError as error:
        text = "sbom needs the package cyclonedx-python-lib: pip install 'dso-packer[sbom]'"
        raise ExportError(text) from error


def document(
    name: str,
    metadata: Mapping[str, Any],
    properties: Iterable[tuple[str, str]],
    parts: Sequence[Part],
) -> bytes:
    """Write the bill of a library: the same parts give the same bytes.

    The version and license are in the `metadata`; `properties` are further facts.
    """
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.dependency import Dependency
    from cyclonedx.model.tool import ToolRepository
    from cyclonedx.output.json import JsonV1Dot6

    library = Component(
        name=name,
        type=ComponentType.LIBRARY,
        bom_ref="library",
        version=metadata.get("version"),
        licenses=_licenses(metadata.get("license", "")),
        properties=_properties(properties),
    )
    tools = [part for part in parts if part.kind == "compiler"]
    made = [part for part in parts if part.kind != "compiler"]
    components = [_component(part, index) for index, part in enumerate(made)]
    packer = Component(
        name="dso-packer",
        type=ComponentType.APPLICATION,
        bom_ref="tool:dso-packer",
        version=runtime.__version__,
    )
    compilers = [
        Component(
            name=part.name,
            type=ComponentType.APPLICATION,
            bom_ref=f"tool:{index}",
            version=part.version or None,
            properties=_properties(part.properties),
        )
        for index, part in enumerate(tools)
    ]
    bom = Bom(
        components=components,
        metadata=BomMetaData(
            tools=ToolRepository(components=[packer, *compilers]), component=library
        ),
        dependencies=[
            Dependency(library.bom_ref, [Dependency(item.bom_ref) for item in components]),
            *(Dependency(item.bom_ref) for item in components),
        ],
    )
    return _fixed(JsonV1Dot6(bom).output_as_string())


def _fixed(text: str) -> bytes:
    """Replace the random serial number by one of the contents, and drop the time."""
    fields = json.loads(text)
    fields.pop("serialNumber", None)
    fields["metadata"].pop("timestamp", None)
    contents = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    fields["serialNumber"] = f"urn:uuid:{uuid5(_NAMESPACE, contents)}"
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\0"


def _component(part: Part, index: int) -> Any:
    from cyclonedx.model import HashAlgorithm, HashType
    from cyclonedx.model.component import Component, ComponentType

    digest = [HashType(alg=HashAlgorithm.SHA_256, content=part.sha256)] if part.sha256 else []
    return Component(
        name=part.name,
        type=ComponentType(_TYPES[part.kind]),
        bom_ref=f"{part.kind}:{index}",
        version=part.version or None,
        hashes=digest,
        licenses=_licenses(part.license),
        properties=_properties([("kind", part.kind), *part.properties]),
    )


def _properties(rows: Iterable[tuple[str, str]]) -> list[Any]:
    from cyclonedx.model import Property

    return [Property(name=_PREFIX + name, value=value) for name, value in rows]


def _licenses(text: str) -> list[Any]:
    """Read an SPDX expression; any other text is a license with this name."""
    if not text:
        return []
    from cyclonedx.contrib.license.factories import LicenseFactory

    return [LicenseFactory().make_from_string(text)]
