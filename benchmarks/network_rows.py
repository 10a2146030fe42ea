"""The networks of onnx_networks.py: a row for each, by the library that makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from network_modules import Demucs, Edsr, Esrgan, First, Generator, Spectrum, Tagger, TasNet, Tcn

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]

TIMM = """
beit_base_patch16_224 botnet26t_256 caformer_s18 cait_xxs24_224 coat_tiny coatnet_0_rw_224
convit_tiny convmixer_768_32 convnext_tiny convnextv2_atto crossvit_9_240 cspdarknet53 davit_tiny
deit3_small_patch16_224 densenet121 dla34 dpn68 edgenext_small efficientformerv2_s0 efficientnet_b0
efficientvit_b0 efficientvit_m1 eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 focalnet_tiny_srf
gcvit_xxtiny ghostnet_100 gmlp_s16_224 halonet26t hgnetv2_b0 hrnet_w18_small
inception_next_atto inception_v3 lambda_resnet26t lcnet_050 levit_128 mambaout_femto
maxvit_tiny_rw_224 mixer_s16_224 mnasnet_100 mobilenetv4_conv_small mobileone_s0 mobilevit_s
mobilevitv2_050 mvitv2_tiny nf_resnet26 nfnet_f0 pit_ti_224 poolformer_s12 pvt_v2_b0
rdnet_tiny regnety_008 repvgg_a0 repvit_m1 res2net50_26w_4s resmlp_12_224 resnest14d resnetv2_50
rexnet_100 selecsls42b sequencer2d_s seresnext26t_32x4d shvit_s1 skresnet18 starnet_s1
swiftformer_xs swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 tf_efficientnet_lite0
tf_mixnet_s tiny_vit_5m_224 tinynet_a tnt_s_patch16_224 tresnet_m twins_svt_small vgg11_bn
visformer_tiny vit_tiny_patch16_224 volo_d1_224 vovnet39a xception41 xcit_nano_12_p16_224
""".split()  # noqa: SIM905
PICTURE, VIDEO = (1, 3, 224, 224), (1, 3, 8, 112, 112)
TORCHVISION: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("alexnet", "googlenet", "mobilenet_v3_small", "shufflenet_v2_x1_0"), PICTURE),
    **dict.fromkeys(("deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large"), PICTURE),
    **dict.fromkeys(("mc3_18", "r2plus1d_18", "r3d_18", "swin3d_t"), VIDEO),
    "mvit_v2_s": (1, 3, 16, 224, 224),
    "s3d": (1, 3, 16, 224, 224),
    "squeezenet1_1": PICTURE,
}


class Row(NamedTuple):
    """A network of transformers: the classes, the inputs and the sizes of its configuration."""

    model: str
    config: str
    input: int | tuple[int, ...]  # so many tokens, or the shape of random numbers
    sizes: dict[str, Any]
    part: str = ""  # the attribute that runs, or all


SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
OF_DETR = {"d_model": 128, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "num_queries": 50}
OF_VIDEO = {"image_size": 112, "num_frames": 8, **SMALL}
SOUND, VIEW = (1, 16000), (1, 3, 256, 256)
TRANSFORMERS = {
    "albert": Row("AlbertModel", "AlbertConfig", 128, {"embedding_size": 128, **SMALL}),
    "ast": Row("ASTModel", "ASTConfig", (1, 256, 128), {"max_length": 256, **SMALL}),
    "bert": Row("BertModel", "BertConfig", 128, SMALL),
    "clip_vision": Row("CLIPVisionModel", "CLIPVisionConfig", PICTURE, SMALL),
    "conformer": Row("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", SOUND, SMALL),
    "convbert": Row("ConvBertModel", "ConvBertConfig", 128, SMALL),
    "dac": Row("DacModel", "DacConfig", (1, 1, 8000), {"encoder_hidden_size": 32}, "encoder"),
    "deberta_v2": Row(
        "DebertaV2Model", "DebertaV2Config", 128,
        {"relative_attention": True, "position_buckets": 64, "pos_att_type": ["p2c", "c2p"],
         "share_att_key": True, **SMALL},
    ),
    "dinov2": Row(
        "Dinov2Model", "Dinov2Config", PICTURE,
        {"image_size": 224, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4},
    ),
    "dpt": Row(
        "DPTForDepthEstimation", "DPTConfig", PICTURE,
        {"image_size": 224, "backbone_out_indices": [0, 1, 2, 3], "fusion_hidden_size": 64,
         "neck_hidden_sizes": [32, 64, 128, 256], **SMALL},
    ),
    "electra": Row("ElectraModel", "ElectraConfig", 128, SMALL),
    "encodec": Row("EncodecModel", "EncodecConfig", (1, 1, 24000), {}, "encoder"),
    "fnet": Row(
        "FNetModel", "FNetConfig", 128,
        {"hidden_size": 256, "num_hidden_layers": 4, "intermediate_size": 1024},
    ),
    "gemma": Row(
        "GemmaModel", "GemmaConfig", 128,
        {"num_key_value_heads": 1, "head_dim": 64, "vocab_size": 5000, "use_cache": False, **SMALL},
    ),
    "glpn": Row("GLPNForDepthEstimation", "GLPNConfig", VIEW, {}),
    "gpt2": Row(
        "GPT2Model", "GPT2Config", 128,
        {"n_embd": 256, "n_layer": 4, "n_head": 4, "use_cache": False},
    ),
    "hifigan": Row("SpeechT5HifiGan", "SpeechT5HifiGanConfig", (100, 80), {}),
    "hubert": Row("HubertModel", "HubertConfig", SOUND, SMALL),
    "llama": Row(
        "LlamaModel", "LlamaConfig", 128,
        {"num_key_value_heads": 2, "vocab_size": 5000, "use_cache": False, **SMALL},
    ),
    "mamba": Row(
        "MambaModel", "MambaConfig", 32,
        {"hidden_size": 128, "num_hidden_layers": 2, "vocab_size": 1000, "use_cache": False},
    ),
    "mobilevit_parts": Row(
        "MobileViTForSemanticSegmentation", "MobileViTConfig", VIEW, {"image_size": 256}
    ),
    "mpnet": Row("MPNetModel", "MPNetConfig", 128, SMALL),
    "rt_detr": Row("RTDetrModel", "RTDetrConfig", VIEW, OF_DETR),
    "sam_vision": Row(
        "SamVisionModel", "SamVisionConfig", VIEW,
        {"image_size": 256, "hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4,
         "global_attn_indexes": [3], "window_size": 7, "mlp_dim": 768},
    ),
    "segformer": Row("SegformerModel", "SegformerConfig", VIEW, {}),
    "segformer_parts": Row("SegformerForSemanticSegmentation", "SegformerConfig", VIEW, {}),
    "sew": Row("SEWModel", "SEWConfig", SOUND, SMALL),
    "swin2sr": Row("Swin2SRModel", "Swin2SRConfig", (1, 3, 64, 64), {}),
    "swin2sr_twice": Row(
        "Swin2SRForImageSuperResolution", "Swin2SRConfig", (1, 3, 48, 48), {"upscale": 2}
    ),
    "t5_encoder": Row(
        "T5EncoderModel", "T5Config", 128,
        {"d_model": 256, "d_kv": 64, "d_ff": 1024, "num_layers": 4, "num_heads": 4},
    ),
    "timesformer": Row("TimesformerModel", "TimesformerConfig", (1, 8, 3, 112, 112), OF_VIDEO),
    "videomae": Row("VideoMAEModel", "VideoMAEConfig", (1, 8, 3, 112, 112), OF_VIDEO),
    "vivit": Row("VivitModel", "VivitConfig", (1, 8, 3, 112, 112), OF_VIDEO),
    "wav2vec2": Row("Wav2Vec2Model", "Wav2Vec2Config", SOUND, SMALL),
    "wavlm": Row("WavLMModel", "WavLMConfig", SOUND, SMALL),
    "whisper_encoder": Row(
        "WhisperModel", "WhisperConfig", (1, 80, 1000),
        {"d_model": 256, "encoder_layers": 4, "encoder_attention_heads": 4, "decoder_layers": 1,
         "encoder_ffn_dim": 1024, "max_source_positions": 500},
        "encoder",
    ),
    "xlnet": Row(
        "XLNetModel", "XLNetConfig", 128,
        {"d_model": 256, "n_layer": 4, "n_head": 4, "d_inner": 1024},
    ),
    "yolos": Row(
        "YolosModel", "YolosConfig", VIEW,
        {"image_size": [256, 256], "num_detection_tokens": 20, **SMALL},
    ),
}  # fmt: skip
MODULES: dict[str, tuple[Callable[[], torch.nn.Module], int | tuple[int, ...]]] = {
    "dcgan": (Generator, (1, 100, 1, 1)),
    "demucs": (Demucs, (1, 1, 16000)),
    "edsr": (Edsr, (1, 3, 64, 64)),
    "esrgan": (Esrgan, (1, 3, 48, 48)),
    "gru_tagger": (lambda: Tagger("GRU"), 100),
    "lstm_tagger": (lambda: Tagger("LSTM"), 100),
    "spectrum": (Spectrum, (1, 16000)),
    "tasnet": (TasNet, (1, 1, 8000)),
    "tcn": (Tcn, (1, 64, 1000)),
}
NAMES = [*TIMM, *TORCHVISION, *TRANSFORMERS, *MODULES]


def make(name: str) -> Made:
    """Make a network of random weights, and inputs."""
    torch.manual_seed(1)
    if name in TIMM:
        return _of_timm(name)
    if name in TORCHVISION:
        return _of_torchvision(name), _input(TORCHVISION[name])
    if name in MODULES:
        module, shape = MODULES[name]
        return module(), _input(shape, 5000)
    return _of_transformers(TRANSFORMERS[name])


def _input(shape: int | tuple[int, ...], tokens: int = 0) -> tuple[torch.Tensor, ...]:
    if isinstance(shape, int):
        return (torch.randint(3, tokens - 1, (1, shape)),)
    return (torch.randn(*shape),)


def _of_timm(name: str) -> Made:
    _declare_missing_operators()
    import timm

    model = timm.create_model(name, pretrained=False)
    return model, _input((1, *model.default_cfg["input_size"]))


def _of_torchvision(name: str) -> torch.nn.Module:
    _declare_missing_operators()
    import torchvision  # type: ignore[import-untyped]

    kinds = (torchvision.models, torchvision.models.segmentation, torchvision.models.video)
    made = next(getattr(kind, name) for kind in kinds if hasattr(kind, name))
    has_backbone = "_resnet" in name or "raspp" in name
    return First(made(weights=None, **({"weights_backbone": None} if has_backbone else {})))


def _of_transformers(row: Row) -> Made:
    import transformers

    config = getattr(transformers, row.config)(**row.sizes)
    kind = getattr(transformers, row.model)
    try:
        model = kind._from_config(config, attn_implementation="sdpa")
    except ValueError:  # not every network has it
        model = kind._from_config(config, attn_implementation="eager")
    inputs = _input(row.input, getattr(config, "vocab_size", 0))
    return First(getattr(model, row.part) if row.part else model), inputs


_OPERATORS = ("nms", "qnms", "roi_align", "qroi_align", "ps_roi_align", "roi_pool", "ps_roi_pool")
_OPERATORS += ("_roi_align_backward", "_ps_roi_align_backward", "_roi_pool_backward")
_OPERATORS += ("_ps_roi_pool_backward", "deform_conv2d", "_deform_conv2d_backward")
_KEPT: list[torch.library.Library] = []


def _declare_missing_operators() -> None:
    """Declare the operators of torchvision, whose library may not fit the installed torch."""
    if not hasattr(torch.ops.torchvision, "_cuda_version"):
        library = torch.library.Library("torchvision", "DEF")
        for name in _OPERATORS:
            library.define(f"{name}(Tensor x) -> Tensor")
        library.define("_cuda_version() -> int")
        library.impl("_cuda_version", lambda: -1, "CompositeExplicitAutograd")
        _KEPT.append(library)
