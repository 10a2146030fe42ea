"""Compare all architectures of `support/architectures.py` with ONNX Runtime at 20 shapes each.

all_architectures.py [NAME ...] prints a line for each; the status is 1 if one differs, or is
refused.
A model that torch cannot export is listed, and does not count.
"""

from __future__ import annotations

import io
import logging
import sys
import tempfile
import time
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

from importers.onnx.tests.support.architectures import TEXT, compare
from packer import PackerError


def main(names: list[str]) -> int:
    """Print a line for each; return 1 if one differs or is refused."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    bad = 0
    for name in names or TEXT:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found, is_bad = outcome(name, Path(folder))
        bad += is_bad
        print(f"{name:16} {found}, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{len(names or TEXT)} architectures, {bad} that differ or are refused")
    return int(bad > 0)


def outcome(name: str, folder: Path) -> tuple[str, bool]:
    """Say what became of an architecture, and whether that is bad."""
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            compared = compare(name, folder, num_shapes=20)
    except PackerError as error:
        return f"refused: {error.message[:200]}", True
    except Exception as error:  # of any class: torch's exporter does not document them
        is_of_torch = not (folder / f"{name}.onnx").exists()
        first = next(iter(str(error).splitlines()), "")
        return f"{'torch: ' * is_of_torch}{type(error).__name__}: {first[:200]}", not is_of_torch
    return f"{compared.worst:.1e} of the greatest", compared.worst > 1e-4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
