"""Corrections of the generator of C code for LSTM, GRU and RNN.

The generator refuses `direction` of GRU and RNN, and gives the parameters of activations to others
than ONNX Runtime does. Its text stores each result at its step, also of a layer that runs
backwards. It returns the first state of an empty sequence, where ONNX Runtime returns zeros, and
limits the gates of an LSTM before it adds the peepholes, not the arguments of the activations.
"""

from __future__ import annotations

import re
from typing import Any

_LAYERS = ("LSTM", "GRU", "RNN")
# The activations with parameters, and the defaults; None has none.
_PARAMETERS: dict[str, dict[str, float | None]] = {
    "activation_alpha": {
        "LeakyRelu": 0.01,
        "ThresholdedRelu": 1.0,
        "HardSigmoid": 0.2,
        "Elu": 1.0,
        "Affine": None,
        "ScaledTanh": None,
    },
    "activation_beta": {"HardSigmoid": 0.5, "Affine": None, "ScaledTanh": None},
}
_STORED = re.compile(r"\[step\]((?:\[\w+\])+ = h_new;)")
_STATE = re.compile(r" ([HC]_prev)\[\d+\]\[(\d+)\];$", re.M)
_STEPS = "            for (int step = 0; step < seq_limit; ++step) {"
_LIMIT = re.compile(
    r" +if \((gate_[iof]) > (\S+)\) \{\s+\1 = \2;\s+\} else if \(\1 < -\2\) \{\s+\1 = -\2;\s+\}\n"
)
_ACTIVATION = re.compile(r"( [iof]_gate = \w+)\(\s*(gate_[iof] \+ [^;]+)\);")


def completed(operator: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a node; for a recurrent layer, as the generator reads them.

    Each activation that has a parameter takes the next number of the attribute, as in ONNX Runtime.
    Raises ValueError if an activation lacks a parameter that has no default.
    """
    if operator not in _LAYERS:
        return given
    names = [name.decode() for name in given.get("activations", ())]
    made = {key: value for key, value in given.items() if key not in _PARAMETERS}
    if "direction" in given:
        made["direction"] = given["direction"].decode()
    for key, defaults in _PARAMETERS.items() if names else ():
        numbers = iter(given.get(key, ()))
        made[key] = [next(numbers, defaults[n]) if n in defaults else 0.0 for n in names]
        if None in made[key]:
            name = names[made[key].index(None)]
            raise ValueError(f"{key}, expected a number for {name}, found {given.get(key)!r}")
    return made


def corrected(text: str) -> str:
    """Return the text of a recurrent layer as ONNX Runtime computes it; another text as it is."""
    if _STEPS not in text:
        return text
    text = _STORED.sub(r"[t]\1", text)
    for name, extent in dict.fromkeys(_STATE.findall(text)):
        empty = f"for (int h = 0; h < {extent} && seq_limit == 0; ++h) {name}[b][h] = 0;\n"
        text = text.replace(_STEPS, f"            {empty}{_STEPS}")
    limit = _LIMIT.search(text)
    if limit and _ACTIVATION.search(text):
        number = limit[2]
        limited = rf"\1((\2) > {number} ? {number} : (\2) < -{number} ? -{number} : (\2));"
        text = _ACTIVATION.sub(limited, _LIMIT.sub("", text))
    return text
