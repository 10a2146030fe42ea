"""ResNet-18 as data: its layers, its parameters, and the same network as ONNX.

He et al., Deep Residual Learning for Image Recognition, 2015: table 1, column 18-layer, with the
shortcuts of option B. The parameters are random numbers, not learned: the class of a picture has no
meaning; the example shows that two programs compute the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PARAMETERS = 11_689_512  # of every ResNet-18 with 1,000 classes
CLASSES = 1000
SIDE = 224  # of the picture, in pixels
EPSILON = 1e-5  # of every batch normalisation

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Conv:
    """A convolution and its batch normalisation, and the operations that are fused to them.

    Attributes
    ----------
    name : str
        The name of its parameters and of its result.
    source : str
        The name of its input.
    channels : tuple of int
        In and out.
    kernel, stride : int
        The same in both directions; the padding is half the kernel.
    residual : str
        The name of the result that is added, or "".
    relu : bool
        Whether a ReLU follows.
    """

    name: str
    source: str
    channels: tuple[int, int]
    kernel: int
    stride: int = 1
    residual: str = ""
    relu: bool = True

    @property
    def padding(self) -> int:
        """Zeros on each side of the input."""
        return self.kernel // 2


STEM = Conv("stem", "data", (3, 64), kernel=7, stride=2)
POOL = "pool"  # 3 x 3, stride 2, padding 1; what the blocks begin with


def blocks() -> list[Conv]:
    """The convolutions after the pool, in order of execution."""
    convs, source, inputs = [], POOL, 64
    for stage, outputs in enumerate((64, 128, 256, 512)):
        for block in range(2):
            name = f"stage{stage + 1}.block{block + 1}"
            stride = 2 if stage and not block else 1
            shortcut = source
            if inputs != outputs:
                shortcut = f"{name}.shortcut"
                convs.append(Conv(shortcut, source, (inputs, outputs), 1, stride, relu=False))
            first = Conv(f"{name}.first", source, (inputs, outputs), 3, stride)
            second = Conv(f"{name}.second", first.name, (outputs, outputs), 3, residual=shortcut)
            convs += [first, second]
            source, inputs = second.name, outputs
    return convs


def parameters(seed: int = 18) -> Arrays:
    """Draw all parameters, and the statistics of batch normalisation.

    The scale keeps the size of activations: He's normal distribution for convolutions, and a second
    convolution of each block that adds less than its shortcut.
    """
    random = np.random.default_rng(seed)
    arrays: Arrays = {}
    for conv in (STEM, *blocks()):
        inputs, outputs = conv.channels
        fan_in = inputs * conv.kernel**2
        shape = (outputs, inputs, conv.kernel, conv.kernel)
        arrays[f"{conv.name}.weight"] = random.normal(0, (2 / fan_in) ** 0.5, shape)
        scale = 0.4 if conv.residual else 1.0
        arrays[f"{conv.name}.gamma"] = scale * random.uniform(0.8, 1.2, outputs)
        arrays[f"{conv.name}.beta"] = random.normal(0, 0.1, outputs)
        arrays[f"{conv.name}.mean"] = random.normal(0, 0.1, outputs)
        arrays[f"{conv.name}.variance"] = random.uniform(0.8, 1.2, outputs)
    arrays["dense.weight"] = random.normal(0, 512**-0.5, (CLASSES, 512))
    arrays["dense.bias"] = random.normal(0, 0.1, CLASSES)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def count(arrays: Arrays) -> int:
    """The number of parameters that can be learned, without the statistics of normalisations."""
    measured = (".mean", ".variance")
    return sum(array.size for name, array in arrays.items() if not name.endswith(measured))
