"""Functions that a header declares, and that no library defines: an export leaves them out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from runtime.error import ToolchainError
from runtime.module import Module, preorder

from ..toolchain.linkage import undefined_in
from .host import HostModule

Export = TypeVar("Export", bound=Callable[..., Path])


def leaving_out_undefined(export: Export) -> Export:
    """Repeat an export without the functions that the linker did not find."""

    @functools.wraps(export)
    def run(module: Module, *args: Any, **options: Any) -> Path:
        while True:
            try:
                return export(module, *args, **options)
            except ToolchainError as error:
                if not _leave_out(module, undefined_in(error)):
                    raise

    return cast("Export", run)


def _leave_out(module: Module, undefined: set[str]) -> bool:
    hosts = [host for host in preorder(module) if isinstance(host, HostModule)]
    changed = [host.leave_out(undefined) for host in hosts]
    return any(changed)
