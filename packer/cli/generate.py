"""``packer generate``: generate tokens with a language model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from runtime.error import PackerError

from .load import parse_argument, read_speed, signals_end_process
from .parser import CommandParser
from .terminal import write

if TYPE_CHECKING:
    from runtime import Module, Sampling
    from runtime.graph.model_record import TensorInfo

_DESCRIPTION = """\
Generate tokens with a language model whose caches are state, and print their ids, one a line.

Caches of an ONNX model are state if they have the usual names. A model with an encoder needs
--encoder, and begins with its start token. There is no tokenizer here. Loading
runs the constructors of the library: load only libraries that you trust."""

_EPILOG = """\
examples:
  packer generate model.so --ids 1,2,3 --max 64
  packer generate model.so --ids 1,2,3 --stop 2 --temperature 0.8 --top-k 40 --seed 7
  packer generate t5.so --encoder 5,7,3,1 --ids 0
  packer generate whisper.so --encoder @features.npy --ids 50258,50259,50359,50363
  packer generate model.so --ids 1,2,3 --speed  # tokens per second, and the machine's bandwidth"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer generate``."""
    parser = CommandParser(
        "packer generate",
        usage="packer generate [OPTION ...] LIBRARY --ids ID,ID,...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("library", metavar="LIBRARY", help="the library")
    ids = "the tokens to begin with"
    parser.add_argument("--ids", type=_ids, required=True, metavar="IDS", help=ids)
    encoded = "what the encoder gets: ids, with a mask if it has one, or the array in @x.npy"
    parser.add_argument("--encoder", type=_encoded, metavar="IDS|@FILE", help=encoded)
    most = "the most tokens to generate; 64 by default"
    parser.add_argument("--max", type=int, default=64, metavar="N", help=most)
    stop = "tokens that end the text"
    parser.add_argument("--stop", type=_ids, default=[], metavar="IDS", help=stop)
    for option, kind, default, text in (
        ("--temperature", float, 0.0, "divide logits by it; 0, the default, takes the best token"),
        ("--top-k", int, 0, "choose among so many best tokens; 0: all"),
        ("--top-p", float, 1.0, "choose among the best tokens whose probabilities reach this sum"),
        ("--repetition-penalty", float, 1.0, "divide logits of tokens so far by it"),
        ("--seed", int, None, "of the random numbers"),
    ):
        parser.add_argument(option, type=kind, default=default, metavar="N", help=text)
    key = "the key of encrypted modules: a file, env:NAME, or the PKCS #11 URI of a key"
    parser.add_argument("--key", metavar="KEY", help=key)
    speed = "print tokens per second, and the bytes that one thread reads per second"
    parser.add_argument("--speed", action="store_true", help=speed)
    return parser.parse_args(argv)


def _ids(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected ids as in 1,2,3, found {text!r}") from None


def _encoded(text: str) -> str | list[int]:
    return text if text.startswith("@") else _ids(text)


def run(arguments: argparse.Namespace) -> None:
    """Load, generate, print."""
    with signals_end_process():
        _run(arguments)


def _run(arguments: argparse.Namespace) -> None:
    import runtime

    model = runtime.load(arguments.library, key=arguments.key)
    record = model.model_record
    if record is None or not record.states:
        text = "a model with state, found one without; packer export --state names its caches"
        raise PackerError(f"{arguments.library}: expected {text}")
    sampling = runtime.Sampling(
        arguments.temperature,
        arguments.top_k,
        arguments.top_p,
        arguments.repetition_penalty,
        arguments.seed,
    )
    encoder = record.ends_of("encoder")
    if (encoder is None) != (arguments.encoder is None):
        text = "--encoder: the model has no function 'encoder'; leave it out"
        text = text if encoder is None else "the model has an encoder, expected --encoder IDS|@FILE"
        raise PackerError(f"{arguments.library}: {text}")
    _generate(model, arguments, sampling, encoder[0] if encoder is not None else ())


def _generate(
    model: Module,
    arguments: argparse.Namespace,
    sampling: Sampling,
    encoder_inputs: Sequence[TensorInfo],
) -> None:
    from runtime import generate
    from runtime.generation import token_arguments

    session, given = model.session(), arguments.encoder
    times = [perf_counter()]
    try:
        if isinstance(given, str):
            session["encoder"](parse_argument(given))
        elif given is not None:
            session["encoder"](*token_arguments(encoder_inputs, given, 0))
        tokens = generate(
            session,
            arguments.ids,
            maximum=arguments.max,
            stop=arguments.stop,
            sampling=sampling,
        )
        for token in tokens:
            write(str(token))
            times.append(perf_counter())
    except (ValueError, IndexError, TypeError) as error:
        raise PackerError(f"{arguments.library}: {error}") from error
    if arguments.speed and len(times) > 2:
        first, rest = times[1] - times[0], times[-1] - times[1]
        write(
            f"{first * 1e3:.1f} ms to the first token, then {(len(times) - 2) / rest:.1f} tokens "
            f"per second; one thread reads {read_speed():.1f} GB per second"
        )
