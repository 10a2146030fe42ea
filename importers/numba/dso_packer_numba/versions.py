"""The releases of Numba whose internals this importer is known to fit."""

from __future__ import annotations

from packer import ExportError

KNOWN = ("0.67.0", "0.68.1")


def check_installed(force: bool = False) -> str:
    """Return the release of Numba that is installed.

    Parameters
    ----------
    force : bool
        True to accept an unknown release.

    Raises
    ------
    ExportError
        If Numba is missing, or is of an unknown release.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("numba")
    except PackageNotFoundError:
        text = "packer.from_numba needs the package numba: pip install 'dso-packer[numba]'"
        raise ExportError(text) from None
    if found not in KNOWN and not force:
        hint = f"install numba=={KNOWN[-1]}, or use force=True (--force)"
        text = f"numba {found}: expected a release that is known to work: {', '.join(KNOWN)}"
        raise ExportError(f"{text}; {hint}")
    return found
