"""Preprocess source text: what the compiler reads, with its line markers."""

from __future__ import annotations

from collections.abc import Sequence

from ..files.private_directory import temporary_directory
from .build import building, current_build
from .compilation import LANGUAGE_OPTIONS, Compilation, compile_sources
from .compiler import Language, find_compiler, is_nvcc
from .cuda import options_for_nvcc
from .outcome import check
from .process import run


def preprocess(
    code: bytes, language: Language, options: Sequence[str], *, macros: bool = False
) -> str:
    """Run the compiler's preprocessor; nvcc preprocesses CUDA, for the host.

    With `macros` the text keeps the directives that define and undefine macros; nvcc has none.

    Raises ToolchainError if there is no compiler, or if it fails: a header is missing, for example.
    """
    compiler, kind = find_compiler(language), LANGUAGE_OPTIONS[language]
    words = options_for_nvcc(options) if is_nvcc(compiler) else options
    with temporary_directory() as folder:
        source, output = folder / f"source.{language}", folder / f"source.{language}.i"
        source.write_bytes(code)
        kept = ["-dD"] if macros and not is_nvcc(compiler) else []
        place = [str(source), "-o", str(output)]
        command = [*compiler, *words, *kept, "-w", "-x", kind, "-E", *place]
        start = current_build().folder or folder
        completed = run(command, cwd=start, private=folder)
        said = completed.output.replace(str(source), "<string>")
        check(completed._replace(output=said), "preprocessing", output)
        return output.read_text(encoding="utf-8", errors="replace")


def check_syntax(code: bytes, language: Language, options: Sequence[str]) -> None:
    """Compile a source, with the arguments of `preprocess`, to see whether it has errors.

    Raises ToolchainError if it has.
    """
    with temporary_directory() as folder, building(current_build().folder):
        source = folder / f"source.{language}"
        source.write_bytes(code)
        words = (*options, "-w")
        job = Compilation(source, folder / "source.o", language, words, name="<string>")
        compile_sources([job], cwd=folder)
