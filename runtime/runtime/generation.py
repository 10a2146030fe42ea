"""Generation: token after token by a session, each chosen from the logits of the last one."""

from __future__ import annotations

from struct import pack_into
from typing import NamedTuple

from .error import PackerError
from .registry import get_global_func
from .tensors.tensor import Tensor, empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from random import Random

    from .graph.model_record import TensorInfo
    from .session import Session


class Sampling(NamedTuple):
    """How a token is chosen from logits.

    Attributes
    ----------
    temperature : float
        Logits are divided by it; 0 takes the best token: then only the penalty matters.
    top_k : int
        Choose among so many best tokens; 0: all.
    top_p : float
        Choose among the best tokens whose probabilities reach this sum.
    repetition_penalty : float
        Logits of tokens so far are divided by it, negative ones multiplied.
    seed : int, optional
        Of the random numbers; the same one gives the same tokens.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | None = None


_MASK, _POSITIONS = "attention_mask", "position_ids"
_FORMATS = {"int64": "q", "int32": "i"}


def generate(
    session: Session,
    ids: Sequence[int],
    *,
    maximum: int = 64,
    stop: Container[int] = (),
    sampling: Sampling = Sampling(),  # noqa: B008 (it is immutable)
) -> Iterator[int]:
    """Generate tokens with a model of tokens: ``main`` takes ids, and returns logits.

    Parameters
    ----------
    session : Session
        Of a model whose inputs are token ids of shape (1, length), and optionally
        ``attention_mask`` and ``position_ids``. Its tokens so far precede `ids`. Call
        ``session["encoder"]`` first if the model has one.
    ids : sequence of int
        The tokens to begin with, at least one.
    maximum : int
        The most tokens to generate.
    stop : container of int
        Tokens that end the text; the one that is met is the last one.
    sampling : Sampling
        How tokens are chosen; the best one by default.

    Yields
    ------
    int
        Each token, when it is known. The session then has all tokens before it.

    Raises
    ------
    ValueError
        A number is out of its range, there are no ids, or logits are NaN.
    PackerError
        The model has other inputs.
    RuntimeError
        The model has an encoder, which was not called.
    """
    _check(ids, maximum, sampling)
    return _generate(session, ids, maximum, stop, sampling)


def _generate(
    session: Session,
    ids: Sequence[int],
    maximum: int,
    stop: Container[int],
    sampling: Sampling,
) -> Iterator[int]:
    from random import Random

    main, inputs = session["main"], session.inputs
    random, seen, past = Random(sampling.seed), dict.fromkeys(ids), session.length
    given = list(ids)
    for _ in range(maximum):
        result = main(*token_arguments(inputs, given, past))
        past += len(given)
        logits = result[0] if isinstance(result, tuple) else result
        token = _choose(logits, sampling, [*seen], random)
        yield token
        if token in stop:
            return
        seen[token] = None
        given = [token]


def _check(ids: Sequence[int], maximum: int, sampling: Sampling) -> None:
    _check_tokens(ids)
    rows = (
        ("maximum", maximum >= 0, "at least 0", maximum),
        ("temperature", 0 <= sampling[0] < float("inf"), "at least 0, finite", sampling[0]),
        ("top_k", sampling.top_k >= 0, "at least 0", sampling.top_k),
        ("top_p", 0 < sampling.top_p <= 1, "more than 0, at most 1", sampling.top_p),
        ("repetition_penalty", 0 < sampling[3] < float("inf"), "more than 0, finite", sampling[3]),
    )
    for name, is_good, expected, found in rows:
        if not is_good:
            raise ValueError(f"generate: {name}, expected {expected}, found {found!r}")


def _check_tokens(ids: Sequence[int]) -> None:
    if not (len(ids) > 0 and min(ids) >= 0 and max(ids) < 1 << 31):
        text = "at least one token, each from 0 to 2147483647"
        raise ValueError(f"generate: ids, expected {text}, found {ids!r}")


# ---- The arguments of main


def token_arguments(inputs: Sequence[TensorInfo], ids: Sequence[int], past: int) -> list[Tensor]:
    """Return the arguments of a call with tokens after `past` earlier ones."""
    _check_tokens(ids)
    length = len(ids)
    known: dict[str, Sequence[int]] = {_MASK: [1] * (past + length)}
    known[_POSITIONS] = range(past, past + length)
    arguments: list[tuple[Sequence[int], str]] = []
    for info in inputs:
        numbers = known.get(info.name, ids)
        is_second = numbers is ids and any(one is ids for one, _ in arguments)
        if info.dtype not in _FORMATS or len(info.shape) != 2 or is_second:
            raise PackerError(
                f"generate: input {info.name!r}, expected token ids, {_MASK} and {_POSITIONS} of "
                f"two axes and int64 or int32, found {info}; call the session yourself"
            )
        arguments.append((numbers, info.dtype))
    return [_vector(numbers, dtype) for numbers, dtype in arguments]


def _vector(numbers: Sequence[int], dtype: str) -> Tensor:
    """Return numbers as a tensor of shape (1, n)."""
    tensor = empty((1, len(numbers)), dtype)
    view = memoryview(tensor).cast("B")
    pack_into(f"{len(numbers)}{_FORMATS[dtype]}", view, 0, *numbers)
    return tensor


# ---- The choice


def _choose(logits: Tensor, sampling: Sampling, seen: Sequence[int], random: Random) -> int:
    """Choose a token by the last row of logits, which is copied."""
    count = logits.shape[-1]
    line = empty((1, count), "float32")
    row = memoryview(line).cast("B")
    row[:] = memoryview(logits).cast("B")[-len(row) :]
    total = sum(row.cast("f"))
    if total != total:
        raise ValueError("generate: logits, expected numbers, found NaN; check weights and inputs")
    if sampling.repetition_penalty != 1.0:
        penalize = get_global_func("vm.builtin.apply_repetition_penalty")
        penalize(line, _vector(seen, "int32"), float(sampling.repetition_penalty))
    if sampling.temperature == 0:
        return _best(line, 1)[1][0]
    tokens: Sequence[int] = range(count)
    if 0 < sampling.top_k < count:
        line, tokens = _best(line, sampling.top_k)
    sample = get_global_func("vm.builtin.sample_top_p_from_logits")
    temperature, top_p = float(sampling.temperature), float(sampling.top_p)
    index: int = sample(line, temperature, top_p, random.random())
    return tokens[index]


def _best(line: Tensor, count: int) -> tuple[Tensor, list[int]]:
    """Return the greatest logits, and their tokens."""
    values, indices = empty((1, count), "float32"), empty((1, count), "int64")
    topk = get_global_func("tvm.contrib.sort.topk")
    topk(line, values, indices, count, -1, "both", 0)
    return values, memoryview(indices).cast("B").cast("q").tolist()
