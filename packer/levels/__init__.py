"""CPU levels: host code compiled for several processors, in one library.

    table.py         `Level`: name, compiler option, LLVM cpu, features; the rows, lowest first
    choice.py        find_levels(cpu, target) -> the levels that a user names
    asked.py         choose_levels: these, or the levels that importers ask for
    note.py          mark_imported: what an importer asks for, and its notes
    lowest_only.py   why an object is linked at the lowest level only: constructors, thread-locals
    build.py         LevelBuild: the objects of each level -> one object, edited, and a dispatcher
    features.py      the words and bits of dso_cpu.h that a level needs
    dispatcher.py    the text that chooses a level (templates/level_*.s) and defines the functions
    record.py        __packer_cpu_levels: its text, written and read

How code of several levels reaches a link (`packer/link.py`):

1. A host module writes its code with ``write_levels(stem, object_format, target, levels)``, which
   returns a `CodeFile`. The default is `write_code`: source, which `Link` compiles once for each
   level, with ``Level.options`` after the options of the source.
2. A module that makes or has an object or archive for each level returns a `CodeFile` of language
   ``"o"`` or ``"a"`` whose `variants` are the files, one for each level, in the order of `levels`;
   `path` is the first of them. `LLVMModule` compiles for ``Level.llvm_cpu`` and
   ``Level.llvm_features``. A `CodeFile` of an object without variants is linked as it is.
3. `LevelBuild` merges the files of each level to one object. Functions become hidden
   ``__packer_cpu_<level>_<name>``, shared data stays one object, that of the lowest level. The
   dispatcher defines each function as a jump through a slot.

An export for one level has neither objects of levels nor a dispatcher: its sources are compiled
with the options of the level, and `CodeFile.variants` has one file. In all cases `levels` is never
empty there; without ``cpu`` nothing of this room is used, and `write_code` is called.
"""
