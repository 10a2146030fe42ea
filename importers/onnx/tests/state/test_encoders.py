"""Encoders and decoders: functions that share the states of a session, beside ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime

from ..support.encoders import merged, models, write

SOURCE = np.array([[3, 1, 7, 5]])
MASK = np.array([[1, 1, 0, 1]])


@pytest.fixture(scope="module", params=["pair", "merged"])
def folder(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, and the library of the folder."""
    made = write(tmp_path_factory.mktemp("files") / request.param, request.param)
    packer.export_library(packer.from_onnx(made), made / "model.so")
    return made


def steps_of_ort(steps: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the logits of each call, by the three files."""
    run = {
        name: onnxruntime.InferenceSession(made.SerializeToString()).run
        for name, made in models().items()
    }
    ids = {"input_ids": SOURCE, "attention_mask": MASK}
    (hidden,) = run["encoder_model"](None, ids)
    given = {"encoder_attention_mask": MASK, "input_ids": steps[0]}
    logits, own, cross = run["decoder_model"](None, {**given, "encoder_hidden_states": hidden})
    yield logits
    for ids in steps[1:]:
        given = {"encoder_attention_mask": MASK, "input_ids": ids, "past_0_cross": cross}
        logits, own = run["decoder_with_past_model"](None, {**given, "past_0_own": own})
        yield logits


def test_folder_of_optimum_is_one_library(folder: Path) -> None:
    """The first call makes the caches; later ones append, and read cross attention's."""
    model = runtime.load(folder / "model.so")
    assert [str(one) for one in model.inputs] == ["input_ids: int64[1, seq]"]
    assert [one.name for one in model.outputs] == ["logits"]
    kept = {one.input: one.appended for one in model.model_record.states}
    assert [name for name, appended in kept.items() if appended] == ["past_0_own"]
    session = model.session()
    steps = [np.array([ids]) for ids in ([8, 2], [4], [0, 6, 1], [5])]
    for _ in range(2):
        session["encoder"](SOURCE, MASK)
        fork = session.fork()
        for ids, right in zip(steps, steps_of_ort(steps), strict=True):
            for one in (session, fork):
                np.testing.assert_allclose(one["main"](ids).numpy(), right, rtol=1e-4, atol=1e-5)
        assert (session.length, fork.length) == (7, 7)
        session.reset()


def test_order_of_calls_is_checked(folder: Path) -> None:
    """Neither a decoder without an encoder's state, nor a second encoder in a text."""
    session = runtime.load(folder / "model.so").session()
    with pytest.raises(
        RuntimeError, match=r"main: .* found one without; call session\['encoder'\]"
    ):
        session["main"](SOURCE)
    session["encoder"](SOURCE, MASK)
    session["encoder"](SOURCE[:, :2], MASK[:, :2])
    session["main"](SOURCE)
    with pytest.raises(RuntimeError, match="before 'main', found one with its state; reset the"):
        session["encoder"](SOURCE, MASK)
    assert session.length == 4
    session.reset()
    with pytest.raises(RuntimeError, match="call session"):
        session["main"](SOURCE)


def test_weights_of_both_graphs_are_stored_once(folder: Path) -> None:
    """Each of the three files has them."""
    module = next(
        one for one in runtime.load(folder / "model.so").imported_modules if one.own_record
    )
    assert {"table", "out", "turn"} <= module.own_weights.keys()
    assert len(module.own_weights) <= 6


def test_generate_command_calls_the_encoder(folder: Path) -> None:
    """With ids, and a mask of ones; what does not fit is said."""
    path = folder / "model.so"
    command = [sys.executable, "-m", "packer", "generate", str(path), "--ids", "0", "--max", "5"]
    found = subprocess.run([*command, "--encoder", "3,1"], capture_output=True, text=True)
    session = runtime.load(path).session()
    session["encoder"](SOURCE[:, :2], np.ones((1, 2), np.int64))
    assert found.stdout.split() == [str(one) for one in runtime.generate(session, [0], maximum=5)]
    missing = subprocess.run(command, capture_output=True, text=True)
    assert missing.returncode == 1
    assert "the model has an encoder, expected --encoder IDS|@FILE" in missing.stderr
    np.save(folder / "x.npy", SOURCE)
    wrong = subprocess.run(
        [*command, "--encoder", f"@{folder / 'x.npy'}"], capture_output=True, text=True
    )
    assert "expected 2 arguments, found 1" in wrong.stderr
    assert "Traceback" not in missing.stderr + wrong.stderr


def test_a_function_that_begins_a_cache_is_called_first(tmp_path: Path) -> None:
    """The graph of the first call may be a function by another name."""
    files = models()
    made = {"main": files["decoder_with_past_model"], "begin": files["decoder_model"]}
    model = runtime.load(packer.export_library(packer.from_onnx(made), tmp_path / "x.so"))
    session, hidden = model.session(), np.zeros((1, 4, 4), np.float32)
    session["begin"](MASK, SOURCE, hidden)
    session["main"](MASK, SOURCE)
    assert session.length == 8
    with pytest.raises(RuntimeError, match="begin: expected a session before 'main'"):
        session["begin"](MASK, SOURCE, hidden)


def test_merged_decoder_alone_has_the_encoder_as_inputs() -> None:
    """A mapping has one function; the caches are state, and the If is not in the library."""
    module = packer.from_onnx({"main": merged()})
    record = next(one.own_record for one in module.imported_modules if one.own_record)
    names = ["encoder_attention_mask", "input_ids", "encoder_hidden_states"]
    assert [one.name for one in record.inputs] == names
    assert not any("body" in name for name in module.function_names())


def test_state_none_keeps_the_branches() -> None:
    """Then use_cache_branch is an input, and so are the caches."""
    module = packer.from_onnx(merged(), state={})
    record = next(one.own_record for one in module.imported_modules if one.own_record)
    assert {"use_cache_branch", "past_0_own"} <= {one.name for one in record.inputs}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: {}, "models, expected 'main' and other names of functions, found"),
        (lambda one: {"main": (one["decoder_model"],)}, "or two: of the first call, .* found 1"),
        (
            lambda one: {"main": (one["decoder_model"], one["encoder_model"])},
            "main: expected equal inputs and results of the first call and of later ones",
        ),
        (
            lambda one: {"main": one["decoder_with_past_model"], "reader": one["reader"]},
            "'past_0_own', expected one that each function with it appends to",
        ),
    ],
)
def test_models_that_do_not_fit_are_refused(change, message: str) -> None:
    """The error says what is wrong."""
    with pytest.raises(packer.ExportError, match=message):
        packer.from_onnx(change(models()))


def test_state_of_two_types_is_refused() -> None:
    """The encoder's result has another size than the decoder reads."""
    files = models()
    files["encoder_model"].graph.output[0].type.tensor_type.shape.dim[2].dim_value = 4
    for made in (files["decoder_model"],):
        value = next(v for v in made.graph.input if v.name == "encoder_hidden_states")
        value.type.tensor_type.elem_type = onnx.TensorProto.INT64
        made.graph.node.insert(
            0, onnx.helper.make_node("Cast", ["encoder_hidden_states"], ["hidden"], to=1)
        )
        product = next(node for node in made.graph.node if node.op_type == "MatMul")
        product.input[0] = "hidden"
    pair = files["decoder_model"], files["decoder_with_past_model"]
    with pytest.raises(packer.ExportError, match="expected one type in all functions, found"):
        packer.from_onnx({"main": pair, "encoder": files["encoder_model"]})


def test_folder_without_a_decoder_is_refused(tmp_path: Path) -> None:
    """The files that there are, and how optimum writes the others."""
    write(tmp_path, "pair")
    (tmp_path / "decoder_with_past_model.onnx").unlink()
    with pytest.raises(packer.ExportError, match="found .*encoder_model.onnx.*'-with-past'"):
        packer.from_onnx(tmp_path)
    (tmp_path / "packer.toml").write_text('[module.m]\nkind = "onnx"\nmodel = "."\n')
    for words in (["--onnx", str(tmp_path)], []):
        command = [sys.executable, "-m", "packer", "export", "x.so", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, "a folder of models, expected" in done.stderr) == (1, True)


def test_sets_of_shapes_are_refused(tmp_path: Path) -> None:
    """A model with several graphs has one."""
    sets = [{"input_ids": (1, length)} for length in (1, 2)]
    with pytest.raises(packer.ExportError, match="several graphs, expected one set of input"):
        packer.from_onnx(write(tmp_path, "merged"), sets)


PROGRAM = """\
#include <dso.h>
#include <stdio.h>
typedef int64_t row[4];
static dso_any call(dso_session *session, const char *name, int count, row *ids, int64_t n) {
  int64_t shape[] = {1, n};
  DLTensor given[2];
  dso_any arguments[2], made = dso_none();
  for (int i = 0; i < count; i++) {
    given[i] = (DLTensor){ids[i], {1, 0}, 2, {0, 64, 1}, shape, NULL, 0};
    arguments[i] = dso_tensor(&given[i]);
  }
  if (dso_session_call(session, name, &made, arguments, count)) puts(dso_last_error());
  return made;
}
int main(int argc, char **argv) {
  int64_t source[2][4] = {{3, 1, 7, 5}, {1, 1, 0, 1}}, ids[1][4] = {{0}};
  dso_module *model = dso_load(argv[argc - 1], NULL);
  dso_session *session = dso_session_new(model, 0);
  (void)call(session, "main", 1, ids, 1);
  dso_any made = call(session, "encoder", 2, source, 4);
  dso_release(&made);
  for (int step = 0; step < 5; step++) {
    made = call(session, "main", 1, ids, 1);
    const float *logits = dso_tensor_of(&made)->data;
    ids[0][0] = 0;
    for (int i = 1; i < 9; i++)
      if (logits[i] > logits[ids[0][0]]) ids[0][0] = i;
    printf("%d\\n", (int)ids[0][0]);
    dso_release(&made);
  }
  dso_session_release(session);
  dso_module_release(model);
  return 0;
}
"""


def test_a_program_in_c_calls_the_encoder(folder: Path) -> None:
    """It gets the tokens that Python gets, and the error of a call before the encoder."""
    (folder / "program.c").write_text(PROGRAM)
    flags = [sys.executable, "-m", "packer", "config", "--cflags", "--libs", "--static"]
    words = subprocess.run(flags, check=True, capture_output=True, text=True).stdout.split()
    program = str(folder / "program")
    subprocess.run(["cc", str(folder / "program.c"), *words, "-o", program], check=True)
    command = [program, str(folder / "model.so")]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    error, *tokens = ran.stdout.splitlines()
    session = runtime.load(folder / "model.so").session()
    session["encoder"](SOURCE, MASK)
    assert tokens == [str(one) for one in runtime.generate(session, [0], maximum=5)]
    assert "main: expected a session with the state that 'encoder' makes" in error
