"""Trust: whether a file is the one that the holder of a key signed, and what may be loaded.

verify.py          verify_file, verify_data: a file and its signature; nothing is run
rule.py policy.py  Trust, and the policy of a process
opening.py sealed.py verified_load.py   a load that verifies a sealed copy first
hardening/         which start-up code of a library may run
encryption/        encrypted entries, and their keys
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# A load that verifies nothing imports none of it.
def __getattr__(name: str) -> Any:
    from ..public_names import import_public

    return import_public(__name__, name)
