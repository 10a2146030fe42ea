"""Single bytes of encrypted entries are changed: none is decrypted, and no other error is raised.

python tests/stress/encrypted_flips.py [COUNT] [SEED]
"""

from __future__ import annotations

import collections
import random
import sys

import numpy as np

import packer
import runtime
from runtime.trust.encryption.envelope import HEADER_NBYTES

KEY = bytes(range(32))
START = 8 + 8 + len("encrypted") + 8  # of the envelope, in a blob of one entry


def main(count: int = 10_000, seed: int = 22) -> int:
    """Change one bit or byte at a time; half of the places are in the header."""
    values = np.arange(5000, dtype="f4")
    module = runtime.ConstLoaderModule({"w": values}, {})
    with packer.encrypting(module, KEY):
        blob = runtime.serialize_module_to_bytes(module)
    nbytes = int.from_bytes(blob[START - 8 : START], "little")
    chance, reasons = random.Random(seed), collections.Counter[str]()
    for number in range(count):
        place = chance.randrange(HEADER_NBYTES if number % 2 else nbytes)
        changed = bytearray(blob)
        changed[START + place] ^= chance.randrange(1, 256)
        try:
            with runtime.decrypting(KEY):
                runtime.deserialize_module_from_bytes(changed)
            reasons["accepted"] += 1
        except runtime.EncryptionError as error:
            reasons[error.reason] += 1
    with runtime.decrypting(KEY):
        tensor = runtime.deserialize_module_from_bytes(blob).weights["w"]
    print(f"{count} changes with seed {seed}: {dict(reasons)}")
    return int(reasons["accepted"] > 0 or bytes(tensor.raw) != values.tobytes())


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
