"""All libraries of tests/support/c_uses.py: what is exported, what is refused and why, and its use.

    python tests/stress/c_libraries.py [NAME...]

A reason counts by its words, without names and numbers.
"""

from __future__ import annotations

import re
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

import packer
import runtime
from tests.support.c_uses import LIBRARIES


def run(name: str) -> bool:
    """Export, use and describe one library; return True if the use is right."""
    library, start, is_right = LIBRARIES[name], time.monotonic(), True
    with TemporaryDirectory() as folder:
        module = library.module()
        loaded = runtime.load(packer.export_library(module, Path(folder, "own.so")))
        seconds = time.monotonic() - start
        try:
            library.use(loaded, Path(folder))
        except Exception:
            traceback.print_exc()
            is_right = False
    reasons = Counter(words_of(reason) for reason in module.left_out.values())
    exported = sum(not d.name.startswith("_packer_") for d in module.functions)
    texts = [f"{count} {text}" for text, count in reasons.most_common()]
    left_out = f"{len(module.left_out)} ({'; '.join(texts)})" if texts else "0"
    verdict = "used" if is_right else "FAILED"
    print(f"| {name} | {exported} | {left_out} | {seconds:.1f} | {verdict} |", flush=True)
    return is_right


def words_of(reason: str) -> str:
    """Return the words of a reason."""
    head = re.split(r"[;,]", reason)[0]
    return re.sub(r"parameter \d+ '[^']*': |result: |: \".*", "", head).strip()


def main(names: list[str]) -> int:
    """Print a row for each library."""
    print("| library | exported | left out | seconds | ten lines |\n|---|---|---|---|---|")
    results = [run(name) for name in names or LIBRARIES]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
