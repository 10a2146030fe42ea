"""Networks of several libraries, with random weights, beside ONNX Runtime, on one thread.

python benchmarks/onnx_networks.py [NAME ...]: in an environment with the importer of models, timm,
torchvision and transformers; a name may have * and ?. Calls of the library and of the peer take
turns, and processor time is measured. Prints for each network the seconds of the export, the
milliseconds, the ratio of times and the error beside the greatest number of each result, then the
median ratio, the 90th percentile and the worst.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import torch

import packer
import runtime

CALLS, SECONDS = 9, 4
PICTURE = (1, 3, 224, 224)
LIMITS = (1.0, 1.3, 2.0)  # of the median, the 90th percentile and the worst
Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]

TIMM = """
beit_base_patch16_224 cait_xxs24_224 coat_tiny coatnet_0_rw_224 convit_tiny convmixer_768_32
convnext_tiny convnextv2_atto crossvit_9_240 cspdarknet53 davit_tiny deit3_small_patch16_224
densenet121 dla34 dpn68 edgenext_small efficientformerv2_s0 efficientnet_b0 efficientvit_b0
efficientvit_m1 fastvit_t8 focalnet_tiny_srf gcvit_xxtiny ghostnet_100 halonet26t hgnetv2_b0
hrnet_w18_small inception_v3 lambda_resnet26t levit_128 lcnet_050 maxvit_tiny_rw_224
mixer_s16_224 mnasnet_100 mobilenetv4_conv_small mobileone_s0 mobilevit_s mvitv2_tiny
nf_resnet26 nfnet_f0 pit_ti_224 poolformer_s12 pvt_v2_b0 regnety_008 repvgg_a0 res2net50_26w_4s
resnest14d resnetv2_50 rexnet_100 selecsls42b seresnext26t_32x4d skresnet18
swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 tf_efficientnet_lite0 tinynet_a
tiny_vit_5m_224 tnt_s_patch16_224
tresnet_m twins_svt_small vgg11_bn visformer_tiny vit_tiny_patch16_224 volo_d1_224 vovnet39a
xception41 xcit_nano_12_p16_224
""".split()  # noqa: SIM905
SIZES = {
    "crossvit_9_240": 240,
    "halonet26t": 256,
    "inception_v3": 299,
    "swinv2_tiny_window8_256": 256,
}
SIZES |= {"lambda_resnet26t": 256, "mobilevit_s": 256, "nfnet_f0": 192}


def of_timm(name: str) -> Made:
    """Make a network of timm."""
    _declare_missing_operators()
    import timm

    size = SIZES.get(name, 224)
    return timm.create_model(name, pretrained=False), (torch.randn(1, 3, size, size),)


def of_torchvision(name: str, *shape: int) -> Made:
    """Make a network of torchvision; of a dictionary the first result counts."""
    _declare_missing_operators()
    import torchvision  # type: ignore[import-untyped]

    kinds = [torchvision.models, torchvision.models.segmentation, torchvision.models.video]
    kinds += [torchvision.models.optical_flow, torchvision.models.quantization]
    make = next(getattr(kind, name) for kind in kinds if hasattr(kind, name))
    model = make(
        weights=None, **({"weights_backbone": None} if "_resnet" in name or "raspp" in name else {})
    )
    return First(model), (torch.randn(*shape),)


class First(torch.nn.Module):
    """A network with one result: the first value of a dictionary, a tuple or an object."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Return the first result."""
        made = self.model(*inputs)
        if isinstance(made, dict):
            made = next(iter(made.values()))
        return made[0] if isinstance(made, (tuple, list)) else made


def of_transformers(
    name: str, config: str, inputs: Callable[[Any], tuple[Any, ...]], **sizes: Any
) -> Made:
    """Make a network of transformers, whose configuration has `sizes`."""
    import transformers

    made = getattr(transformers, config)(**sizes)
    try:
        model = getattr(transformers, name)._from_config(made, attn_implementation="sdpa")
    except ValueError:  # not every network has it
        model = getattr(transformers, name)._from_config(made, attn_implementation="eager")
    return First(model), inputs(made)


def ids(count: int) -> Callable[[Any], tuple[Any, ...]]:
    """Make tokens."""
    return lambda config: (torch.randint(3, config.vocab_size - 1, (1, count)),)


def numbers(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    """Make random numbers."""
    return lambda config: (torch.randn(*shape),)


class Tcn(torch.nn.Module):
    """Dilated causal convolutions, as for sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Conv1d(64, 64, 3, padding=2 * 2**i, dilation=2**i) for i in range(8)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        for layer in self.layers:
            x = x + torch.relu(layer(x)[..., : x.shape[-1]])
        return x


class TasNet(torch.nn.Module):
    """A separation network: a learned filter bank, depthwise convolutions, the bank's inverse."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.encode = nn.Conv1d(1, 256, 16, 8)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(256, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256),
                nn.Conv1d(256, 256, 3, padding=2**i, dilation=2**i, groups=256), nn.PReLU(),
                nn.GroupNorm(1, 256), nn.Conv1d(256, 256, 1),
            )
            for i in range(6)
        )  # fmt: skip
        self.decode = nn.ConvTranspose1d(256, 1, 16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the waveform."""
        coded = torch.relu(self.encode(x))
        made = coded
        for block in self.blocks:
            made = made + block(made)
        return self.decode(coded * torch.sigmoid(made))


class Edsr(torch.nn.Module):
    """A super-resolution network of residual blocks and a pixel shuffle."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.first = nn.Conv2d(3, 64, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)
            )
            for _ in range(8)
        )
        self.last = nn.Sequential(
            nn.Conv2d(64, 256, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(64, 3, 3, padding=1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the picture."""
        x = first = self.first(x)
        for block in self.blocks:
            x = x + 0.1 * block(x)
        return self.last(x + first)


class Tagger(torch.nn.Module):
    """Embeddings, an LSTM in both directions and a classifier."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(5000, 128)
        self.layer = getattr(torch.nn, kind)(128, 128, 2, batch_first=True, bidirectional=True)
        self.last = torch.nn.Linear(256, 20)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the scores."""
        return torch.log_softmax(self.last(self.layer(self.table(ids))[0]), -1)


class Spectrum(torch.nn.Module):
    """A spectrogram on a logarithmic scale, and convolutions over it."""

    def __init__(self) -> None:
        super().__init__()
        self.window = torch.nn.Parameter(torch.hann_window(400), requires_grad=False)
        self.bands = torch.nn.Linear(201, 64, bias=False)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 32, 3, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, 2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        made = torch.stft(x, 400, 160, window=self.window, center=False, return_complex=False)
        power = (made**2).sum(-1).transpose(1, 2)
        return self.layers(torch.log(self.bands(power).abs() + 1e-5)[:, None])


SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
NETWORKS: dict[str, Callable[[], Made]] = {
    **{name: (lambda name=name: of_timm(name)) for name in TIMM},
    **{
        name: (lambda name=name, shape=shape: of_torchvision(name, *shape))
        for name, shape in {
            "alexnet": PICTURE,
            "squeezenet1_1": PICTURE,
            "shufflenet_v2_x1_0": PICTURE,
            "googlenet": PICTURE,
            "mobilenet_v3_small": PICTURE,
            "fcn_resnet50": PICTURE,
            "deeplabv3_resnet50": PICTURE,
            "lraspp_mobilenet_v3_large": PICTURE,
            "r3d_18": (1, 3, 8, 112, 112),
            "mc3_18": (1, 3, 8, 112, 112),
            "r2plus1d_18": (1, 3, 8, 112, 112),
            "s3d": (1, 3, 16, 224, 224),
            "swin3d_t": (1, 3, 8, 112, 112),
            "mvit_v2_s": (1, 3, 16, 224, 224),
        }.items()
    },
    "bert": lambda: of_transformers("BertModel", "BertConfig", ids(128), **SMALL),
    "albert": lambda: of_transformers(
        "AlbertModel", "AlbertConfig", ids(128), embedding_size=128, **SMALL
    ),
    "deberta_v2": lambda: of_transformers(
        "DebertaV2Model",
        "DebertaV2Config",
        ids(128),
        relative_attention=True,
        position_buckets=64,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        **SMALL,
    ),
    "electra": lambda: of_transformers("ElectraModel", "ElectraConfig", ids(128), **SMALL),
    "xlnet": lambda: of_transformers(
        "XLNetModel", "XLNetConfig", ids(128), d_model=256, n_layer=4, n_head=4, d_inner=1024
    ),
    "gpt2": lambda: of_transformers(
        "GPT2Model", "GPT2Config", ids(128), n_embd=256, n_layer=4, n_head=4, use_cache=False
    ),
    "llama": lambda: of_transformers(
        "LlamaModel",
        "LlamaConfig",
        ids(128),
        num_key_value_heads=2,
        vocab_size=5000,
        use_cache=False,
        **SMALL,
    ),
    "gemma": lambda: of_transformers(
        "GemmaModel",
        "GemmaConfig",
        ids(128),
        num_key_value_heads=1,
        head_dim=64,
        vocab_size=5000,
        use_cache=False,
        **SMALL,
    ),
    "t5_encoder": lambda: of_transformers(
        "T5EncoderModel",
        "T5Config",
        ids(128),
        d_model=256,
        d_kv=64,
        d_ff=1024,
        num_layers=4,
        num_heads=4,
    ),
    "mpnet": lambda: of_transformers("MPNetModel", "MPNetConfig", ids(128), **SMALL),
    "fnet": lambda: of_transformers(
        "FNetModel",
        "FNetConfig",
        ids(128),
        hidden_size=256,
        num_hidden_layers=4,
        intermediate_size=1024,
    ),
    "mamba": lambda: of_transformers(
        "MambaModel",
        "MambaConfig",
        ids(32),
        hidden_size=128,
        num_hidden_layers=2,
        vocab_size=1000,
        use_cache=False,
    ),
    "wav2vec2": lambda: of_transformers(
        "Wav2Vec2Model", "Wav2Vec2Config", numbers(1, 16000), **SMALL
    ),
    "hubert": lambda: of_transformers("HubertModel", "HubertConfig", numbers(1, 16000), **SMALL),
    "wavlm": lambda: of_transformers("WavLMModel", "WavLMConfig", numbers(1, 16000), **SMALL),
    "whisper_encoder": lambda: whisper(),
    "ast": lambda: of_transformers(
        "ASTModel", "ASTConfig", numbers(1, 256, 128), max_length=256, **SMALL
    ),
    "encodec": lambda: encodec(),
    "segformer": lambda: of_transformers(
        "SegformerModel", "SegformerConfig", numbers(1, 3, 256, 256)
    ),
    "dpt": lambda: of_transformers(
        "DPTForDepthEstimation",
        "DPTConfig",
        numbers(1, 3, 224, 224),
        image_size=224,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[32, 64, 128, 256],
        fusion_hidden_size=64,
        **SMALL,
    ),
    "yolos": lambda: of_transformers(
        "YolosModel",
        "YolosConfig",
        numbers(1, 3, 256, 256),
        image_size=[256, 256],
        num_detection_tokens=20,
        **SMALL,
    ),
    "swin2sr": lambda: of_transformers("Swin2SRModel", "Swin2SRConfig", numbers(1, 3, 64, 64)),
    "videomae": lambda: of_transformers(
        "VideoMAEModel",
        "VideoMAEConfig",
        numbers(1, 8, 3, 112, 112),
        image_size=112,
        num_frames=8,
        **SMALL,
    ),
    "clip_vision": lambda: of_transformers(
        "CLIPVisionModel", "CLIPVisionConfig", numbers(1, 3, 224, 224), **SMALL
    ),
    "dinov2": lambda: of_transformers(
        "Dinov2Model",
        "Dinov2Config",
        numbers(1, 3, 224, 224),
        image_size=224,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
    ),
    "tcn": lambda: (Tcn(), (torch.randn(1, 64, 1000),)),
    "tasnet": lambda: (TasNet(), (torch.randn(1, 1, 8000),)),
    "edsr": lambda: (Edsr(), (torch.randn(1, 3, 64, 64),)),
    "lstm_tagger": lambda: (Tagger("LSTM"), (torch.randint(0, 5000, (1, 100)),)),
    "gru_tagger": lambda: (Tagger("GRU"), (torch.randint(0, 5000, (1, 100)),)),
    "spectrum": lambda: (Spectrum(), (torch.randn(1, 16000),)),
}


def whisper() -> Made:
    """Make the encoder of Whisper, for 10 seconds."""
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = transformers.WhisperConfig(
        d_model=256, encoder_layers=4, encoder_attention_heads=4, encoder_ffn_dim=1024,
        max_source_positions=500,
    )  # fmt: skip
    return First(WhisperEncoder(config)), (torch.randn(1, 80, 1000),)


def encodec() -> Made:
    """Make the convolutions of a codec of sound."""
    import transformers

    model = transformers.EncodecModel(transformers.EncodecConfig())
    return First(model.encoder), (torch.randn(1, 1, 24000),)


def main(patterns: list[str]) -> None:
    """Print a line for each network, and the ratios of all."""
    warnings.filterwarnings("ignore")
    ratios: list[float] = []
    names = [n for n in NETWORKS if not patterns or any(fnmatch(n, p) for p in patterns)]
    print(f"{'network':30} {'export':>7} {'ms':>9} {'of ORT':>7} {'error':>8}")
    for name in names:
        try:
            seconds, ours, ratio, error = compare(NETWORKS[name])
        except (
            Exception
        ) as failed:  # torch has no export of it, or we refuse it: a row that says so
            print(
                f"{name:30} {type(failed).__name__}: {str(failed).splitlines()[0][:120]}",
                flush=True,
            )
            continue
        ratios.append(ratio)
        print(f"{name:30} {seconds:7.1f} {ours:9.2f} {ratio:7.2f} {error:8.1e}", flush=True)
    if len(ratios) > 1:
        found = (median(ratios), quantiles(ratios, n=10)[-1], max(ratios))
        words = ("median", "90th percentile", "worst")
        print(
            "; ".join(
                f"{w} {r:.2f} (limit {m})" for w, r, m in zip(words, found, LIMITS, strict=True)
            )
        )


def compare(make: Callable[[], Made]) -> tuple[float, float, float, float]:
    """Return the export's seconds, our milliseconds, the ratio of times and the error."""
    torch.manual_seed(1)
    model, inputs = make()
    with TemporaryDirectory(prefix="onnx-networks-") as folder:
        path = Path(folder) / "m.onnx"
        with torch.no_grad():
            torch.onnx.export(model.eval(), inputs, path, dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(path), options)
        start = time.process_time()
        module = packer.from_onnx(path)
        library = packer.export_library(
            module, Path(folder) / "m.so", build=packer.Build(cpu="native")
        )
        seconds = time.process_time() - start
        main = runtime.load(library)["main"]
        given = [x.numpy() for x in inputs]
        names = [value.name for value in session.get_inputs()]
        return seconds, *measure(
            lambda: main(*given), lambda: session.run(None, dict(zip(names, given, strict=True)))
        )


def measure(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float, float]:
    """Return our milliseconds, the ratio of the medians and the error."""
    made, wanted = ours(), theirs()[0]
    found = made.numpy() if hasattr(made, "numpy") else made[0].numpy()
    error = float(
        np.max(np.abs(found.astype(np.float64) - wanted)) / max(np.max(np.abs(wanted)), 1e-30)
    )
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + SECONDS
    while len(times[0]) < 3 or (len(times[0]) < CALLS and time.perf_counter() < end):
        for call, of_call in zip((ours, theirs), times, strict=True):
            start = time.process_time()
            call()
            of_call.append(time.process_time() - start)
    mine, peer = map(median, times)
    return 1e3 * mine, mine / peer, error


_MISSING = ("nms", "qnms", "roi_align", "qroi_align", "ps_roi_align", "roi_pool", "ps_roi_pool")
_MISSING += ("_roi_align_backward", "_ps_roi_align_backward", "_roi_pool_backward")
_MISSING += ("_ps_roi_pool_backward", "deform_conv2d", "_deform_conv2d_backward")


def _declare_missing_operators() -> None:
    """Declare the operators of torchvision, whose library may not fit the installed torch."""
    if not hasattr(torch.ops.torchvision, "_cuda_version"):
        library = torch.library.Library("torchvision", "DEF")
        for name in _MISSING:
            library.define(f"{name}(Tensor x) -> Tensor")
        library.define("_cuda_version() -> int")
        library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
        _KEPT.append(library)


_KEPT: list[torch.library.Library] = []


if __name__ == "__main__":
    main(sys.argv[1:])
