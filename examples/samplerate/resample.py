"""Resample a sine with libsamplerate: its header is exported, its functions take NumPy's arrays.

Needs the library with its header (Debian: libsamplerate0-dev).
"""

import numpy as np

import packer
import runtime

header = packer.from_header(
    "/usr/include/samplerate.h",
    libraries=["samplerate"],
    functions={"src_new": {"out": ["error"], "free": "src_delete"}},
)
packer.export_library(header, "resampler.so")

src = runtime.load("resampler.so")
before = np.sin(2 * np.pi * 100 * np.arange(4410) / 44100).astype(np.float32)
after = np.zeros(4800, np.float32)
call = {
    "data_in": before,
    "data_out": after,
    "input_frames": before.size,
    "output_frames": after.size,
    "end_of_input": 1,
    "src_ratio": 48000 / 44100,
}
state, error = src["src_new"](converter_type=0, channels=1)
with state:
    error = error or src["src_process"](state, call)
if error:
    raise SystemExit(src["src_strerror"](error))

expected = np.sin(2 * np.pi * 100 * np.arange(4800) / 48000)
print(f"{src['src_get_name'](0)}: {before.size} -> {call['output_frames_gen']} frames")
print(f"greatest difference from a sine: {np.abs(after - expected)[200:-200].max():.6f}")
