"""The NVIDIA architectures that device code was compiled for.

ptx      ".target sm_80"                 any device of that capability or a later one
cubin    ELF, e_machine 190, e_flags     devices of the same generation, not older
fatbin   a list of both

The native core reads the bytes, as it does before a launch (runtime/native/device/cuda/image.c).
"""

from __future__ import annotations

from typing import NamedTuple

from runtime._core import cuda_images


class Architecture(NamedTuple):
    """The target of one piece of device code."""

    kind: str  # ``"ptx"`` or ``"cubin"``
    capability: int  # the number in NVIDIA's name: 80, 103
    suffix: str = ""  # ``"a"``: this architecture only; ``"f"``: its family; else empty

    def __str__(self) -> str:
        return f"{self.kind} sm_{self.capability}{self.suffix}"

    def runs_on(self, capability: int) -> bool:
        """Return True if the code runs on devices of a capability."""
        if self.suffix == "a":
            return capability == self.capability
        if self.suffix == "f" or self.kind == "cubin":
            return capability // 10 == self.capability // 10 and capability >= self.capability
        return capability >= self.capability


def architectures_of(data: memoryview) -> list[Architecture]:
    """Return the architectures of device code; none if a launch would refuse its bytes."""
    try:
        return [Architecture(*image) for image in cuda_images(data)]
    except ValueError:
        return []
