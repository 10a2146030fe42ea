"""random.c: the same numbers as Numba after the same seed, and others without a seed."""

from __future__ import annotations

import ctypes
import os
import threading

import pytest

from .both import compile_support, ours, theirs

WORDS = 624


class State(ctypes.Structure):
    """The fields that compiled code uses: numba/cpython/randomimpl.py."""

    _fields_ = (
        ("index", ctypes.c_int32),
        ("words", ctypes.c_uint32 * WORDS),
        ("has_gauss", ctypes.c_int32),
        ("gauss", ctypes.c_double),
        ("is_initialized", ctypes.c_int32),
    )


POINTER = ctypes.POINTER(State)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Our functions."""
    return compile_support(tmp_path_factory.mktemp("random"), "random.c")


@pytest.mark.parametrize("seed", [0, 1, 42, 2**32 - 1])
def test_seeded_words_are_those_of_numba(library: ctypes.CDLL, seed: int) -> None:
    """After the seed, and after three turns of the generator."""
    states = []
    for find in (lambda *a: ours(library, *a), theirs):
        state = State()
        find("numba_rnd_init", None, POINTER, ctypes.c_uint32)(state, seed)
        shuffle = find("numba_rnd_shuffle", None, POINTER)
        states.append([(state.index, state.has_gauss, state.is_initialized, list(state.words))])
        for _ in range(3):
            shuffle(state)
            states[-1].append(list(state.words))
    assert states[0] == states[1]


def test_seeded_poisson_numbers_are_those_of_numba(library: ctypes.CDLL) -> None:
    """Means from 10 to a million."""
    drawn = []
    for find in (lambda *a: ours(library, *a), theirs):
        state = State()
        find("numba_rnd_init", None, POINTER, ctypes.c_uint32)(state, 7)
        poisson = find("numba_poisson_ptrs", ctypes.c_int64, POINTER, ctypes.c_double)
        drawn.append([poisson(state, mean) for mean in (10.0, 33.3, 1e3, 1e6) for _ in range(2000)])
    assert drawn[0] == drawn[1]


def test_numbers_without_a_seed_differ(library: ctypes.CDLL) -> None:
    """Between the three generators, between threads, and after a fork."""
    seen = []

    def note() -> None:
        for name in ("py", "np", "internal"):
            state = ours(library, f"numba_get_{name}_random_state", POINTER)()[0]
            assert (state.is_initialized, state.index) == (1, WORDS)
            seen.append(bytes(state.words))

    for _ in range(2):
        thread = threading.Thread(target=note)
        thread.start()
        thread.join()
    note()
    note()  # the same states
    assert len(set(seen)) == 9
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        state = ours(library, "numba_get_np_random_state", POINTER)()[0]
        os.write(writing, bytes(state.words))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, WORDS * 4) not in seen


def test_one_seed_for_both_modules(library: ctypes.CDLL) -> None:
    """`random` and `numpy.random` then begin with the same words."""
    ours(library, "nb_random_seed", None, ctypes.c_uint32)(5)
    states = [
        ours(library, f"numba_get_{name}_random_state", POINTER)()[0] for name in ("py", "np")
    ]
    fresh = State()
    theirs("numba_rnd_init", None, POINTER, ctypes.c_uint32)(fresh, 5)
    assert all(list(state.words) == list(fresh.words) for state in states)


def test_initialisation_by_words_is_that_of_python(library: ctypes.CDLL) -> None:
    """As `random.seed` does with a big number: the reference for init_by_array."""
    import random

    keys = [0x123, 0x234, 0x345, 0x456]
    state = State()
    init = ours(
        library, "nb_random_init_by_words", None, POINTER, ctypes.c_uint32 * 4, ctypes.c_size_t
    )
    init(state, (ctypes.c_uint32 * 4)(*keys), 4)
    number = sum(key << 32 * i for i, key in enumerate(keys))
    python = random.Random(number)
    assert (*state.words, state.index) == python.getstate()[1]
