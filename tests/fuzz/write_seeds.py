"""Write the seeds of the libFuzzer targets that read our formats: ``write_seeds.py FOLDER``.

Each target has a folder of its name: files that our writers make, files that real TVM wrote, and
the malformed ones of the tests.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":  # after the installed packages
    sys.path[:] = [*(p for p in sys.path if Path(p or ".").resolve() != ROOT), str(ROOT)]

import runtime  # noqa: E402
from tests.fuzz.seeds import arrays, blobs, safetensors  # noqa: E402
from tests.support.graphs import sum_graph  # noqa: E402
from tests.support.paths import GOLDEN  # noqa: E402

MOST_NBYTES = 8192  # of a golden file: larger ones only slow the fuzzer down
MANIFEST = {
    "schema": 1,
    "producer": "p",
    "target": "x86_64-linux-gnu",
    "entries": [{"type_key": "strange", "offset": 8, "nbytes": 30}],
}
UNKNOWN = (1).to_bytes(8, "little") + (7).to_bytes(8, "little") + b"strange" + bytes(15)


def seeds() -> dict[str, list[bytes]]:
    """The inputs of each target."""
    golden = [path.read_bytes() for path in sorted(GOLDEN.glob("**/*.bin"))]
    listed = UNKNOWN + b"MANIFEST" + json.dumps(MANIFEST).encode()
    graph = json.dumps(sum_graph()).encode()
    weights = safetensors()
    return {
        "blob": [listed, *golden, *blobs("tvm"), *blobs("tvm-ffi")],
        "params": [runtime.save_param_dict(arrays()), *golden],
        "safetensors": [weights, len(weights).to_bytes(8, "little") + weights],
        "graph_json": [graph],
        "json_parse": [graph, json.dumps(MANIFEST).encode(), weights[8:-32], b'["\\ud83d\\ude00"]'],
    }


def main(folder: Path) -> None:
    """Write all of them."""
    for name, inputs in seeds().items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(inputs):
            if len(data) <= MOST_NBYTES:
                (folder / name / f"seed{number}").write_bytes(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
