"""The rules of all loads of a process.

A policy is a TOML file. The folder with the longest path that contains a file decides:

    default = "refuse"             # files elsewhere: "refuse" (also without this line) or "anyone"

    [[folder]]
    path = "models"                # relative to the policy's own folder
    keys = ["acme.pub"]            # as `Trust.keys` takes them; files are relative likewise
    minimum_version = "1.2"        # optional

    [[folder]]
    path = "ci"
    sigstore = {identity = "https://...", issuer = "https://..."}  # as `Trust.sigstore` takes them

    [[folder]]
    path = "/opt/tools"
    sha256 = ["9f86d081..."]       # as `Trust.sha256` takes them

    [[folder]]
    path = "/usr/lib/models"
    trust = "anyone"

    [bytes]                        # load_from_bytes, base64, JSON, pickle and what one fetched
    keys = ["acme.pub"]
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ..error import VerifyError, shown
from .rule import Trust, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "DSO_TRUST"
_MAX_NBYTES = 1 << 20  # of a policy file
_KINDS = ("trust", "keys", "sha256", "sigstore")


class Policy(NamedTuple):
    """The rules of a process."""

    folders: tuple[tuple[str, Trust], ...]  # absolute folders, the longest first
    default: Trust  # for files in no folder
    bytes: Trust  # for libraries that are loaded from bytes

    def of_file(self, path: str) -> Trust:
        """Return the rule for a file, by its real path."""
        for folder, trust in self.folders:
            if path.startswith(folder if folder.endswith("/") else f"{folder}/"):
                return trust
        return self.default


_policy: Policy | None = None
_from_environment: tuple[str, Policy] | None = None
_seen: dict[str, str] = {}  # values of the variable, and the paths that they mean


def set_trust_policy(policy: Trust | str | os.PathLike[str] | None) -> None:
    """Set what every later load of this process must prove.

    Parameters
    ----------
    policy : Trust, path or None
        One rule for all files and bytes, the path of a policy file (docs/trust.md), or None for
        that of the environment variable DSO_TRUST, and without it for none.

    Raises
    ------
    VerifyError
        The file cannot be read, or is malformed. Every load is refused then until another policy
        is set.

    Notes
    -----
    It is also asked for `load_from_bytes`, base64, JSON and pickle, for standalone files, and for
    the libraries outside the system's folders that a library needs. Libraries and modules that are
    loaded already stay. A `trust` argument of `load` is asked beside the policy, never instead.
    """
    global _policy
    if policy is None or isinstance(policy, Trust):
        _policy = None if policy is None else Policy((), policy, policy)
        return
    try:
        _policy = read_policy(os.fspath(policy))
    except VerifyError as error:
        _policy = _nobody(error)
        raise


def active_policy() -> Policy | None:
    """Return the policy that is in force; None without one."""
    global _from_environment
    if _policy is not None:
        return _policy
    path = _path_of_variable()
    if path is None:
        return None
    if _from_environment is None or _from_environment[0] != path:
        try:
            _from_environment = path, read_policy(path)
        except VerifyError as error:
            _from_environment = path, _nobody(error)
    return _from_environment[1]


def _path_of_variable() -> str | None:
    """Return the absolute path of DSO_TRUST.

    A relative one means the folder that was current when this process first saw the value.
    """
    given = os.environ.get(VARIABLE)
    if given is None:
        return None
    if given not in _seen:
        _seen[given] = os.path.abspath(given)
    return _seen[given]


def _nobody(error: VerifyError) -> Policy:
    rule = refuse(f"the policy cannot be used, so every file is refused: {error}")
    return Policy((), rule, rule)


def read_policy(path: str) -> Policy:
    """Read a policy file; raises VerifyError if it cannot be read or is malformed."""
    import tomllib

    from ..serial.mapped_file import map_file

    try:
        data = map_file(path)[0]
        if len(data) > _MAX_NBYTES:
            raise ValueError(f"{len(data)} bytes, expected at most {_MAX_NBYTES}")
        table = tomllib.loads(str(data, "utf-8"))
        return _policy_of(table, os.path.dirname(os.path.realpath(path)))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, VerifyError):
            raise VerifyError(f"{path}: {error}", path=path, reason="policy") from error
        text = f"{path}: the trust policy: {getattr(error, 'strerror', None) or error}"
        raise VerifyError(text, path=path, reason="policy") from error


def _policy_of(table: Mapping[str, Any], base: str) -> Policy:
    _only(table, ("default", "folder", "bytes"), "")
    default = table.get("default", "refuse")
    if default not in ("refuse", "anyone"):
        raise ValueError(f'default, expected "refuse" or "anyone", found {shown(default)}')
    refused = refuse("in no folder of the trust policy, whose default is to refuse")
    rows = table.get("folder", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("folder, expected tables [[folder]]")
    folders = {}
    for row in rows:
        path = row.get("path")
        if not isinstance(path, str) or not path:
            raise ValueError(f"[[folder]]: path, expected a folder, found {shown(path)}")
        folder = os.path.realpath(os.path.join(base, path))
        if folder in folders:
            raise ValueError(f"[[folder]]: {path!r} is there twice")
        folders[folder] = _rule(row, base, f"[[folder]] {path!r}", ("path",))
    given = table.get("bytes")
    if given is not None and not isinstance(given, dict):
        raise ValueError("bytes, expected a table [bytes]")
    from_bytes = _rule(given, base, "[bytes]") if given is not None else None
    return Policy(
        tuple(sorted(folders.items(), key=lambda item: -len(item[0]))),
        Trust.anyone() if default == "anyone" else refused,
        from_bytes or refuse("bytes without [bytes] in the trust policy"),
    )


def _rule(row: Mapping[str, Any], base: str, where: str, more: tuple[str, ...] = ()) -> Trust:
    """Return what one table asks for."""
    _only(row, (*_KINDS, "minimum_version", *more), f"{where}: ")
    kinds = [key for key in _KINDS if key in row]
    if len(kinds) != 1:
        one_of = f"{', '.join(_KINDS[:-1])} and {_KINDS[-1]}"
        raise ValueError(f"{where}: expected one of {one_of}, found {len(kinds)}")
    version = row.get("minimum_version")
    if version is not None and not (kinds[0] in ("keys", "sigstore") and isinstance(version, str)):
        raise ValueError(f"{where}: minimum_version, expected a text beside keys or sigstore")
    if kinds == ["trust"]:
        if row["trust"] != "anyone":
            raise ValueError(f'{where}: trust, expected "anyone", found {shown(row["trust"])}')
        return Trust.anyone()
    if kinds == ["sigstore"]:
        return _sigstore(row["sigstore"], base, f"{where}: sigstore", version)
    texts = row[kinds[0]]
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise ValueError(f"{where}: {kinds[0]}, expected a list of texts, found {shown(texts)}")
    if kinds == ["sha256"]:
        return Trust.sha256(*texts)
    files = [t if t.startswith("env:") else os.path.join(base, t) for t in texts]
    return Trust.keys(*files, minimum_version=version)


def _sigstore(given: Any, base: str, where: str, version: str | None) -> Trust:
    """Return the rule of an inline table."""
    if type(given) is not dict:
        raise ValueError(f"{where}, expected a table of identity and issuer, found {shown(given)}")
    _only(given, ("identity", "issuer", "trusted_root"), f"{where}: ")
    texts = {"identity": "", "issuer": "", **given}
    for name, text in texts.items():
        if not isinstance(text, str) or not text:
            raise ValueError(f"{where}: {name}, expected a text, found {shown(text)}")
    root = os.path.join(base, texts["trusted_root"]) if "trusted_root" in texts else None
    return Trust.sigstore(
        texts["identity"], texts["issuer"], trusted_root=root, minimum_version=version
    )


def _only(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise ValueError(f"{where}unknown key {shown(unknown[0])}, expected {', '.join(known)}")


_path_of_variable()
