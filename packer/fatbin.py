"""create_fatbin(images): several cubins and PTX in one file; a device loads the best one.

    u32 magic 0xba55ed50, u16 version 1, u16 bytes of this header, u64 bytes after it
    for each image
        u16 kind (1 PTX, 2 cubin), u16 version 0x101, u32 bytes of this header, u64 of the image
        u32 bytes when compressed (0), u32 offset of its options (cubin: 0), u16 minor, u16 major
        u32 capability (90 of sm_90), u32 0, u32 0
        u64 flags, u64 0, u64 0
        for PTX: u32 offset of the options' text (0x48), u32 bytes of it (0), u64 0
        the image, padded to 8; PTX with its NUL

NVIDIA's fatbinary writes the same with ``--compress=false``, and notes to linkers.
"""

from __future__ import annotations

import re
from struct import Struct
from typing import TYPE_CHECKING

from runtime.error import ExportError

from .elf.architecture import architectures_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

_HEADER = Struct("<IHHQ")
_IMAGE = Struct("<HHIQIIHHIIIQQQ")
_MAGIC, _VERSION, _IMAGE_VERSION = 0xBA55ED50, 1, 0x101
_OPTIONS = Struct("<IIQ")
_KINDS = {"ptx": 1, "cubin": 2}
_IS_64_BIT, _IS_OF_LINUX = 0x1, 0x10
_SUFFIXES = {"": 0, "a": 0x100000, "f": 0x200000}
_PTX_VERSION = re.compile(rb"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_EI_ABIVERSION = 8


def create_fatbin(images: Iterable[Buffer | str]) -> bytes:
    """Join cubins and PTX, for ``runtime.DeviceModule("cuda", ..., "fatbin", functions)``.

    Parameters
    ----------
    images : iterable of buffer or str
        Cubins, and PTX: the same kernels for different devices.

    Returns
    -------
    bytes
        A device loads the cubin of its capability, else the nearest older one of its major
        version, else the newest PTX that is not newer than the device.

    Raises
    ------
    ExportError
        If an image is neither a cubin nor PTX, if there is none, or if `images` is not a list.
    """
    if isinstance(images, str | bytes | bytearray | memoryview):
        raise ExportError("images: expected a list of cubins and PTX, found one; write [image]")
    entries = b"".join(
        _entry(index, image.encode() if isinstance(image, str) else bytes(image))
        for index, image in enumerate(images)
    )
    if not entries:
        raise ExportError("a fatbin without images, expected cubins or PTX")
    return _HEADER.pack(_MAGIC, _VERSION, _HEADER.size, len(entries)) + entries


def _entry(index: int, image: bytes) -> bytes:
    found = architectures_of(memoryview(image))
    if len(found) != 1 or image.startswith(_MAGIC.to_bytes(4, "little")):
        raise ExportError(
            f"image {index} of a fatbin: expected a cubin or PTX, found {image[:16]!r}"
        )
    (one,) = found
    options = b""
    if one.kind == "ptx":
        version = _PTX_VERSION.search(image)
        major, minor = map(int, version.groups()) if version else (1, 0)
        image = image.rstrip(b"\0") + b"\0"
        options = _OPTIONS.pack(_IMAGE.size + 8, 0, 0)
    else:
        major, minor = 1, image[_EI_ABIVERSION]
    image += bytes(-len(image) % 8)
    sizes = (_IMAGE.size + len(options), len(image), 0, _IMAGE.size if options else 0)
    flags = _IS_64_BIT | _IS_OF_LINUX | _SUFFIXES[one.suffix]
    device = (minor, major, one.capability, 0, 0, flags, 0, 0)
    return _IMAGE.pack(_KINDS[one.kind], _IMAGE_VERSION, *sizes, *device) + options + image
