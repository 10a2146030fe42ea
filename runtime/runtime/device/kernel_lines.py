"""The lines by which TVM splits OpenCL source into kernels: ``// Function: name``.

TVM compiles the text between two such lines as one program, and refuses source that has not one for
each kernel. The text of each kernel is all of the source here, of which a compiler that reads the
whole sees the first one only.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_MARK = b"// Function: "


def with_kernel_lines(source: bytes | memoryview, kernels: Collection[str]) -> bytes | memoryview:
    """Return source with a line for each kernel; the same object if it has them, or no kernels."""
    text = bytes(source)
    found = [name.encode("utf-8", "surrogateescape") for name in kernels]
    marked = re.findall(rb"// Function: ([^\n]*)", text)
    if not found or sorted(marked) == sorted(found):
        return source
    text = text.replace(_MARK, b"//  Function: ")  # TVM does not split here
    if len(found) == 1:
        return b"%s%s\n#line 1\n%s" % (_MARK, found[0], text)
    guarded = b"#ifndef DSO_SOURCE\n#define DSO_SOURCE\n#line 1\n%s\n#endif\n" % text
    return b"".join(b"%s%s\n%s" % (_MARK, name, guarded) for name in found)
