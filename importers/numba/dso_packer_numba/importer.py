"""The importer of Python functions, as packer finds it: its settings and options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from packer import Importer, Setting


class _Signature(argparse.Action):
    """Collects ``NAME=SIGNATURE``; a name that comes again adds a signature."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Add one text; ends the command with exit code 2 if it has another form."""
        name, separator, signature = (part.strip() for part in str(values).partition("="))
        if not (name.isidentifier() and separator and signature):
            text = "expected NAME=SIGNATURE, as in dist=float64(float64[::1])"
            raise argparse.ArgumentError(self, f"{text}, found {values!r}")
        found = getattr(namespace, self.dest) or {}
        setattr(namespace, self.dest, {**found, name: (*found.get(name, ()), signature)})


def _add_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    signature = "the signature of a function, as dist=float64(float64[::1]); a second adds another"
    text = f"{signature}; may be repeated"
    add("--signature", dest="functions", action=_Signature, metavar="NAME=SIGNATURE", help=text)
    add("--blas", metavar="FILE", help="the library of np.dot and np.linalg")
    unknown = "use a release of Numba that is not known to work"
    add("--force", action="store_true", help=unknown)


IMPORTER = Importer(
    "numba",
    {".py": lambda first: b"numba" in first},
    "dso_packer_numba:from_numba",
    (
        Setting(
            "functions",
            "table",
            "Function = signature, or an array of them, which replace its decorator's: "
            '`dist = "float64(float64[::1])"`.',
        ),
        Setting("only", "strings", "The functions to export, in addition to `functions`."),
        Setting("timeout", "number", "How many seconds a file may need until it is imported; 60."),
        Setting("force", "boolean", "Use a release of Numba that is not known to work."),
        Setting(
            "blas",
            "path",
            "The library of `np.dot` and `np.linalg`. Default: that of the package "
            "scipy-openblas64.",
        ),
    ),
    _add_options,
    title="Python functions; importers/numba/docs/numba.md",
    text="a Python file; Numba compiles its functions",
)
