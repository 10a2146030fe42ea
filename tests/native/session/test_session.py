"""Sessions of bytecode with state: what calls keep, forks, bounds and refusals."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import packer
import runtime
from packer.relax import DataType, Program

from ...support.sessions import library, stateful


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """A sum of all numbers so far."""
    return runtime.load(library(tmp_path_factory.mktemp("session")))


def test_calls_continue_where_the_last_one_ended(model) -> None:
    """Rows are appended, far beyond the memory of the first call."""
    session = model.session()
    sums = [session["main"](float(i)) for i in range(1000)]
    assert sums == [i * (i + 1) / 2 for i in range(1000)]
    assert session.length == 1000


def test_state_can_be_replaced(model) -> None:
    """It is zeros at first; the length counts appended rows only."""
    session = model.session()
    assert [session["last"](x) for x in (3.0, 4.0, 5.0)] == [0, 3, 4]
    assert session.length == 0


def test_code_expects_a_state_or_none() -> None:
    """The text is the error; a call that expects something changes nothing."""
    program = Program()
    code = program.function("make", ["x"])
    code.run("dso.state.write", 0, (1,), DataType(2, 32))
    code.ret(code.params[0])
    for name, arguments in (
        ("begins", (0, 0, "begins: call it first")),
        ("goes_on", (0, 1, "goes_on: call make first")),
        ("number", (0, 1, 5)),
        ("text", ("0", 1, "x")),
    ):
        code = program.function(name, ["x"])
        code.run("dso.state.expect", *arguments)
        code.ret(code.params[0])
    session = program.executable().session()
    assert session["begins"](1) == 1
    with pytest.raises(RuntimeError, match="goes_on: call make first"):
        session["goes_on"](1)
    session["make"](1)
    assert session.fork()["goes_on"](1) == 1
    with pytest.raises(RuntimeError, match="begins: call it first"):
        session["begins"](1)
    with pytest.raises(TypeError, match="dso.state.expect.* str"):
        session["number"](1)
    with pytest.raises(TypeError, match="dso.state.expect.* int"):
        session["text"](1)
    session.reset()
    assert session["begins"](1) == 1


def test_reset_forgets(model) -> None:
    """Both kinds of state are as in a new session."""
    session = model.session()
    session["main"](3.0), session["last"](3.0)
    session.reset()
    assert session.length == 0
    assert (session["main"](1.0), session["last"](1.0)) == (1, 0)


def test_fork_is_independent(model) -> None:
    """Both have the rows before it, and none of the other's after it; forks can be forked."""
    session = model.session()
    session["main"](1.0), session["last"](1.0)
    fork = session.fork()
    assert [session["main"](10.0), session["last"](10.0)] == [11, 1]
    assert [fork["main"](100.0), fork["last"](100.0)] == [101, 1]
    again = fork.fork()
    del fork
    assert [again["main"](0.5), again["last"](0.5), session["main"](1.0)] == [101.5, 100, 12]
    assert (session.length, again.length) == (3, 3)


def test_failed_call_changes_nothing(model) -> None:
    """The row that it stored does not count."""
    session = model.session()
    session["main"](1.0)
    with pytest.raises(ValueError, match="a negative number"):
        session["main"](-5.0)
    assert session.length == 1
    assert session["main"](2.0) == 3


def test_maximum_bounds_the_rows(model) -> None:
    """The call beyond it is refused, and the advice works."""
    session = model.session(maximum=2)
    session["main"](1.0), session["main"](2.0)
    refused = r"session: length 3, expected at most 2; reset it, or make one with a greater maximum"
    with pytest.raises(ValueError, match=refused):
        session["main"](3.0)
    session.reset()
    assert session["main"](4.0) == 4


@pytest.mark.parametrize("maximum", [0, -1])
def test_maximum_is_at_least_one(model, maximum) -> None:
    """None is without a bound."""
    with pytest.raises(ValueError, match=f"maximum, expected at least 1, found {maximum}"):
        model.session(maximum=maximum)


def test_call_without_a_session_says_how(model) -> None:
    """The function is found, and its first use of the state is refused."""
    with pytest.raises(RuntimeError, match=r"expected a call by a session.*model.session\(\)"):
        model["main"](1.0)


def test_other_functions_and_wrong_names(model) -> None:
    """A session finds what the module has."""
    assert model.session()["plus"](2, 3) == 5
    with pytest.raises(runtime.FunctionNotFoundError, match="'mian'.*near names: 'main'"):
        model.session()["mian"]


def test_session_has_the_states_of_one_model(tmp_path: Path) -> None:
    """The second model of a tree is refused, and a session for it works."""
    root = stateful()
    root.import_module(stateful(names=("second", "of_second")))
    model = runtime.load(packer.export_library(root, tmp_path / "both.so"))
    session = model.session()
    session["main"](1.0)
    with pytest.raises(ValueError, match="found one of another model; make a session for each"):
        session["second"](1.0)
    assert session["main"](1.0) == 2
    assert model.session()["second"](1.0) == 1


def test_state_beyond_the_bound_is_refused(tmp_path: Path) -> None:
    """Numbers of states come from a file."""
    session = runtime.load(library(tmp_path, state=4095)).session()
    with pytest.raises(IndexError, match="session: state 4096, expected less than 4096"):
        session["last"](1.0)
    assert session["main"](1.0) == 1


def test_sessions_outlive_modules(tmp_path: Path) -> None:
    """A session keeps its module, and a function its session."""
    session = runtime.load(library(tmp_path)).session()
    gc.collect()
    assert session["main"](2.0) == 2
    main = session["main"]
    del session
    gc.collect()
    assert main(3.0) == 5


def test_threads_have_sessions(model) -> None:
    """Eight sessions at once, and one that all share: a call is done or refused, never mixed."""

    def run(step: float) -> float:
        session = model.session()
        return [session["main"](step) for _ in range(500)][-1]

    shared = model.session()

    def use(_: int) -> int:
        try:
            shared["main"](1.0)
        except RuntimeError as error:
            assert "expected one that no call uses" in str(error)
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == [500 * step for step in range(8)]
        assert sum(pool.map(use, range(2000))) == shared.length
