"""LinkLevels: the CPU levels of one link, from the compilations to the inputs of the linker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..modules.host import CodeFile
from ..toolchain.build import current_build
from ..toolchain.linker import whole
from .build import LevelBuild, LevelInput
from .record import dump_record

if TYPE_CHECKING:
    from ..toolchain.compilation import Compilation
    from ..toolchain.linker import Linker
    from .build import Merge
    from .table import Level


class LinkLevels:
    """The CPU levels of one link, lowest first; none if the export has no ``cpu``.

    `notes` says what is linked at the lowest level only, each with the reason.
    """

    def __init__(self, levels: Sequence[Level] = ()) -> None:
        self.levels = levels
        self.notes: list[str] = []
        self._build: LevelBuild | None = None
        self._built: set[Path] = set()
        self._has_code = False

    @property
    def record(self) -> str | None:
        """The text of ``__packer_cpu_levels``; None without ``cpu``, or without host code."""
        if not self._has_code:
            return None
        is_one = self._build is None or not self._build.objects
        return dump_record(self.levels[:1] if is_one else self.levels, self.notes)

    def compilations(self, file: CodeFile, job: Compilation) -> list[Compilation]:
        """Return the compilations of a source: of a user's source one for each level."""
        if file.is_ours or not self.levels or file.language == "cu":
            return [job]
        if len(self.levels) == 1:
            return [job._replace(options=(*job.options, *self.levels[0].options))]
        jobs = []
        for index, level in enumerate(self.levels):
            output = job.output.with_suffix(f".{index}.o")
            names = current_build().names
            names[str(output)] = names.get(str(job.output), job.output.name)
            # One variable in each section: lowest_only.py. Warnings of the first level suffice.
            options = (*job.options, *level.options, "-fdata-sections", *["-w"] * (index > 0))
            jobs.append(job._replace(output=output, options=options))
        return jobs

    def build(
        self,
        code: Sequence[CodeFile],
        compiled: Mapping[Path, tuple[Path, ...]],
        others: Sequence[Path],
        merge: Merge,
        folder: Path,
    ) -> None:
        """Make the objects of several levels and the dispatcher of host code.

        `compiled` has the objects of each source; `others` are the other objects of the link, and
        `merge` and `folder` are as for `LevelBuild`.
        """
        self._has_code = bool(self.levels and code)
        if len(self.levels) < 2:
            return
        files = {file.path: file.variants or compiled.get(file.path, ()) for file in code}
        names = {file.path: file.name or file.path.name for file in code}
        inputs = [LevelInput(names[path], found) for path, found in files.items() if len(found) > 1]
        plain = [path for path, found in files.items() if len(found) < 2]
        self._build = LevelBuild(self.levels, inputs, [*plain, *others], merge, folder)
        for level, path in zip(self.levels, self._build.objects, strict=False):
            current_build().names[str(path)] = level.name
        self.notes = [f"{one.name}: {why}" for one, why in self._build.lowest.items()]
        cuda = (file.name or file.path.name for file in code if file.language == "cu")
        self.notes += [f"{name}: nvcc compiles it for every processor" for name in cuda]
        lowest = {one.files for one in self._build.lowest}
        self._built = {path for path, found in files.items() if len(found) > 1}
        self._built -= {path for path, found in files.items() if found in lowest}

    def linked(self, code: Sequence[CodeFile]) -> list[CodeFile]:
        """Return code with the objects of all levels in place of their files."""
        if self._build is None:
            return list(code)
        return [*self._objects(), *(file for file in code if file.path not in self._built)]

    def _objects(self) -> Iterator[CodeFile]:
        build = self._build
        if build is not None and build.dispatcher is not None:
            yield CodeFile(build.dispatcher, "c", is_ours=True)
            for path in build.objects:
                yield CodeFile(path, "o", is_ours=True, is_checked=True)


def merging(linker: Linker, options: Sequence[str]) -> Merge:
    """Return the function that merges the objects of a level, with the linker that options name."""
    words = [word for word in options if word.startswith("-fuse-ld=")]
    words = [word for word in words if word != "-fuse-ld=mold"]  # mold 1.10 cannot read its result

    def merge(output: Path, objects: Sequence[Path], archives: Sequence[Path]) -> None:
        linker.create_object(output, objects, options=[*words, *whole(archives)])

    return merge
