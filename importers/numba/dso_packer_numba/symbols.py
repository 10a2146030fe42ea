"""The symbols that Numba's compiled code may leave undefined, and where each comes from.

The table has all functions that Numba registers with its compiler: the C helpers of
``numba._helperlib`` and ``numba.core.runtime._nrt_python``, and the threading layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SUPPORT = Path(__file__).with_name("support")


class Provided(NamedTuple):
    """A C file of the folder ``support`` defines it."""

    file: str


class Library(NamedTuple):
    """A C file defines it with functions of a library: ``"blas"`` or ``"lapack"``."""

    file: str
    library: str


class Refused(NamedTuple):
    """It cannot be provided without Python."""

    why: str


Origin = Provided | Library | Refused


def find(name: str) -> Origin | None:
    """Where an undefined symbol comes from; None if it is not Numba's or Python's."""
    if name in _TABLE:
        return _TABLE[name]
    if name.startswith(("Py", "_Py")):
        return Refused("it uses Python objects")
    if name.startswith(("numba_", "_numba_", "NRT_", "nrt_")):
        return Refused("it is not known to this release of dso-packer")
    return None


def files(names: Iterable[str]) -> list[Path]:
    """The C files that define these symbols, and the files they need, sorted; see `source_of`."""
    found: set[str] = set()
    wanted = {origin.file for name in names if not isinstance(origin := find(name), Refused | None)}
    while wanted:
        name = wanted.pop()
        found.add(name)
        wanted |= set(_NEEDS.get(name, ())) - found
    return [SUPPORT / name for name in sorted(found)]


def source_of(path: Path) -> str:
    """Return the text of a file that `files` names: one is made of the Numba in use."""
    if path.name == "unicode.c":
        from .unicode import unicode_source

        return unicode_source()
    return path.read_text(encoding="utf-8")


# The files whose functions a file calls.
_NEEDS = {
    "array.c": ("nrt.c",),
    "nrt.c": ("calls.c",),
    "pending.c": ("array.c",),
    "parallel.c": ("pending.c",),
    "dict.c": ("table.c",),
    "set.c": ("table.c",),
}

_MATH = """
fixed_fmod fixed_fmodf set_fnclex sdiv srem udiv urem frexp frexpf ldexp ldexpf cpow cpowf erf erff
erfc erfcf gamma gammaf lgamma lgammaf nextafter nextafterf fptoui fptouif
"""
# numba/mathnames.h: a function of libm each.
_LIBM = """
sin sinf cos cosf tan tanf sinh sinhf cosh coshf tanh tanhf asin asinf acos acosf atan atanf asinh
asinhf acosh acoshf atanh atanhf exp expf expm1 expm1f sqrt sqrtf fabs fabsf floor floorf ceil ceilf
log logf log10 log10f log1p log1pf round roundf trunc truncf pow powf fmod fmodf atan2 atan2f
"""
_RANDOM = """
get_py_random_state get_np_random_state get_internal_random_state rnd_shuffle rnd_init poisson_ptrs
"""
_UNICODE = "gettyperecord get_PyUnicode_ExtendedCase"
_DICT = """
dict_new_sized dict_set_method_table dict_free dict_length dict_lookup dict_insert dict_insert_ez
dict_delitem dict_popitem dict_iter_sizeof dict_iter dict_iter_next dict_dump
"""
_LIST = """
list_new list_set_method_table list_free list_base_ptr list_size_address list_length list_allocated
list_is_mutable list_set_is_mutable list_setitem list_getitem list_append list_delitem
list_delete_slice list_iter_sizeof list_iter list_iter_next
"""
_SET = """
set_new set_new_sized set_set_method_table set_free set_length set_add set_contains set_discard
set_iter_sizeof set_iter set_iter_next set_dump
"""
_BLAS = "xxgemm xxgemv xxdot xxnrm2"
_LAPACK = "xxgetrf ez_xxgetri xxpotrf ez_geqrf ez_xxgqr xgesv"
_LAPACK_VALUES = "ez_rgeev ez_cgeev ez_xxxevd ez_gesdd ez_gelsd"
_NRT = """
MemInfo_alloc MemInfo_alloc_safe MemInfo_alloc_aligned MemInfo_alloc_safe_aligned
MemInfo_alloc_safe_aligned_external MemInfo_alloc_external MemInfo_alloc_dtor
MemInfo_alloc_dtor_safe MemInfo_call_dtor MemInfo_new MemInfo_new_varsize MemInfo_new_varsize_dtor
MemInfo_varsize_alloc MemInfo_varsize_free MemInfo_varsize_realloc MemInfo_data MemInfo_data_fast
MemInfo_release MemInfo_acquire MemInfo_refcount MemInfo_size MemInfo_parent
MemInfo_external_allocator Allocate Allocate_External Reallocate Free get_api incref decref
"""
# Not prefixed: numba/np/ufunc/parallel.py and gufunc_scheduler.
_PARALLEL = "numba_parallel_for get_num_threads set_num_threads get_thread_id"
_SCHEDULE = """
do_scheduling_signed do_scheduling_unsigned allocate_sched deallocate_sched set_parallel_chunksize
get_parallel_chunksize get_sched_size
"""
_HASH = """
_numba_hashsecret_djbx33a_suffix _numba_hashsecret_siphash_k0 _numba_hashsecret_siphash_k1
"""

# Kernels of parallel loops release the interpreter's lock, which no code holds here; calls of BLAS
# end the process if they fail.
_PYTHON = """
numba_gil_ensure numba_gil_release PyEval_SaveThread PyEval_RestoreThread Py_FatalError
numba_fatal_error numba_gdb_breakpoint
"""

_OBJECTS = "it converts Python objects"
_REFUSED = {
    "numba_complex_adaptor": _OBJECTS,
    "numba_adapt_ndarray": _OBJECTS,
    "numba_ndarray_new": _OBJECTS,
    "numba_extract_record_data": _OBJECTS,
    "numba_recreate_record": _OBJECTS,
    "numba_get_buffer": _OBJECTS,
    "numba_adapt_buffer": _OBJECTS,
    "numba_release_buffer": _OBJECTS,
    "numba_extract_np_datetime": _OBJECTS,
    "numba_create_np_datetime": _OBJECTS,
    "numba_extract_np_timedelta": _OBJECTS,
    "numba_create_np_timedelta": _OBJECTS,
    "numba_unpack_slice": _OBJECTS,
    "numba_extract_unicode": _OBJECTS,
    "numba_py_type": _OBJECTS,
    "numba_get_pyobject_private_data": _OBJECTS,
    "numba_set_pyobject_private_data": _OBJECTS,
    "numba_reset_pyobject_private_data": _OBJECTS,
    "numba_do_raise": "it makes the exception by calling Python",
    "numba_unpickle": "it unpickles a Python object",
    "numba_runtime_build_excinfo_struct": "it makes the text of an exception while it runs",
    "numba_test_dict": "it is one of Numba's own tests",
    "numba_test_list": "it is one of Numba's own tests",
    "numba_test_set": "it is one of Numba's own tests",
    "NRT_adapt_ndarray_from_python": _OBJECTS,
    "NRT_adapt_ndarray_to_python_acqref": _OBJECTS,
    "NRT_adapt_buffer_from_python": _OBJECTS,
    "NRT_meminfo_new_from_pyobject": _OBJECTS,
    "NRT_meminfo_as_pyobject": _OBJECTS,
    "NRT_meminfo_from_pyobject": _OBJECTS,
    "_nrt_get_sample_external_allocator": "it is one of Numba's own tests",
}

_TABLE: dict[str, Origin] = {
    **{f"numba_{name}": Provided("math.c") for name in _MATH.split()},
    "numba_attempt_nocopy_reshape": Provided("reshape.c"),
    **{f"numba_{name}": Provided("libm.c") for name in _LIBM.split()},
    **{f"numba_{name}": Provided("random.c") for name in _RANDOM.split()},
    **{f"numba_{name}": Provided("unicode.c") for name in _UNICODE.split()},
    **{f"numba_{name}": Provided("dict.c") for name in _DICT.split()},
    **{f"numba_{name}": Provided("list.c") for name in _LIST.split()},
    **{f"numba_{name}": Provided("set.c") for name in _SET.split()},
    **{f"numba_{name}": Library("blas.c", "blas") for name in _BLAS.split()},
    **{f"numba_{name}": Library("lapack.c", "lapack") for name in _LAPACK.split()},
    **{f"numba_{name}": Library("lapack_values.c", "lapack") for name in _LAPACK_VALUES.split()},
    **{f"NRT_{name}": Provided("nrt.c") for name in _NRT.split()},
    **{name: Provided("parallel.c") for name in _PARALLEL.split()},
    **{name: Provided("schedule.c") for name in _SCHEDULE.split()},
    "nb_note": Provided("pending.c"),
    "nb_caught": Provided("calls.c"),
    **{name: Provided("hash.c") for name in _HASH.split()},
    **{name: Provided("python.c") for name in _PYTHON.split()},
    **{name: Refused(why) for name, why in _REFUSED.items()},
}

# The files that need a library.
LIBRARY_FILES = {origin.file for origin in _TABLE.values() if isinstance(origin, Library)}
