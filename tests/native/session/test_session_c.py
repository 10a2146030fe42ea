"""Sessions from C, under ASan and UBSan: the same sums as from Python, and no leaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...support.sessions import library
from ..dso.test_program import run

BEFORE = """
static double add(dso_session *session, double x) {
  dso_any result, value = dso_float(x);
  check(dso_session_call(session, "main", &result, &value, 1) == 0);
  return result.v_float64;
}
static int length(dso_session *session) {
  int64_t rows;
  check(dso_session_length(session, &rows) == 0);
  return (int)rows;
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sum of all numbers so far."""
    return library(tmp_path_factory.mktemp("session"))


def test_state_forks_and_resets(tmp_path: Path, path: Path) -> None:
    """The module is released before its sessions, and a session before its function."""
    body = """
  dso_module *module = load(argv[1]);
  dso_session *session = dso_session_new(module, 0), *fork;
  check(session != NULL);
  dso_module_release(module);
  for (int i = 0; i < 200; i++) add(session, 1);
  check((fork = dso_session_fork(session)) != NULL);
  double one = add(session, 1), ten = add(fork, 10), two = add(session, 1);
  printf("%g %g %g\\n", one, ten, two);
  check(dso_session_reset(session) == 0);
  one = add(session, 5);
  printf("%g %d %d\\n", one, length(session), length(fork));
  dso_function *main = dso_session_function(fork, "main");
  dso_session_release(session);
  dso_session_release(fork);
  dso_any result, value = dso_float(1);
  check(dso_function_call(main, &result, &value, 1) == 0);
  printf("%g\\n", result.v_float64);
  dso_function_release(main);
"""
    lines = run(tmp_path, body, path, before=BEFORE)
    assert lines == ["201 210 202", "5 1 201", "211"]


def test_errors_leave_the_state(tmp_path: Path, path: Path) -> None:
    """Without a session, beyond the maximum, an error of the code, and a wrong name."""
    body = """
  dso_module *module = load(argv[1]);
  dso_session *session = dso_session_new(module, 1);
  dso_any value = dso_float(-1);
  check(dso_module_call(module, "main", NULL, &value, 1) != 0);
  puts(dso_last_error());
  check(dso_session_call(session, "main", NULL, &value, 1) != 0);
  puts(dso_last_error());
  printf("%g\\n", add(session, 4));
  check(dso_session_call(session, "main", NULL, &value, 1) != 0);
  puts(dso_last_error());
  check(dso_session_call(session, "mian", NULL, &value, 1) != 0);
  puts(dso_last_error());
  printf("%d\\n", length(session));
  check(dso_session_new(module, -1) == NULL);
  puts(dso_last_error());
  dso_session_release(session);
  dso_module_release(module);
"""
    lines = run(tmp_path, body, path, before=BEFORE)
    assert "expected a call by a session" in lines[0]
    assert lines[1].startswith("ValueError: put: a negative number")
    assert lines[2] == "4"
    assert lines[3].startswith("ValueError: session: length 2, expected at most 1; reset it")
    assert lines[4].startswith("FunctionNotFoundError:")
    assert lines[5] == "1"
    assert lines[6].startswith("ValueError: session: maximum -1, expected at least 1")


def test_threads_share_a_module(tmp_path: Path, path: Path) -> None:
    """Each thread has a session; another one is used by all, one call at a time."""
    before = (
        BEFORE
        + """
static dso_module *module;
static dso_session *shared;
static int done;
static void *work(void *step) {
  dso_session *session = dso_session_new(module, 0);
  dso_any value = dso_float(1);
  double sum = 0;
  for (int i = 0; i < 300; i++) {
    sum = add(session, *(double *)step);
    if (dso_session_call(shared, "main", NULL, &value, 1) == 0)
      __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
  }
  *(double *)step = sum;
  dso_session_release(session);
  return NULL;
}
"""
    )
    body = """
  pthread_t threads[8];
  double steps[8];
  module = load(argv[1]);
  shared = dso_session_new(module, 0);
  for (int i = 0; i < 8; i++) {
    steps[i] = i;
    check(pthread_create(&threads[i], NULL, work, &steps[i]) == 0);
  }
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 8; i++) printf("%g ", steps[i]);
  puts(length(shared) == done ? "all" : "some");
  dso_session_release(shared);
  dso_module_release(module);
"""
    (line,) = run(tmp_path, body, path, before=before)
    assert line == "0 300 600 900 1200 1500 1800 2100 all"
