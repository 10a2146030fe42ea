"""Properties of the format: a dump parses to the same tree; damage is our error or a tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime

from .support.paths import GOLDEN

GOLDEN = sorted(GOLDEN.glob("*.bin"))
names = st.text(min_size=1, max_size=12).filter(lambda s: s.isprintable())
dtypes = st.sampled_from(["handle", "int32", "float32", "float16x4", "bool", "uint1", "bfloat16"])
infos = st.builds(
    runtime.FunctionInfo, names, st.lists(dtypes, max_size=4), st.lists(names, max_size=4)
)
functions = st.dictionaries(st.text(max_size=12), infos, max_size=4)
arrays = st.builds(
    lambda shape, dtype: runtime.Tensor(bytes(dtype[1] // 8 * shape[0] * shape[1]), shape, dtype),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.sampled_from([(2, 32, 1), (0, 64, 1), (1, 8, 1), (4, 16, 1), (6, 8, 1)]),
)
params = st.dictionaries(names, arrays, max_size=3)
modules = st.one_of(
    st.builds(
        runtime.DeviceModule,
        st.sampled_from(["cuda", "opencl", "hip", "metal", "vulkan", "webgpu"]),
        st.binary(max_size=64),
        names,
        functions,
    ),
    st.builds(
        runtime.DeviceModule,
        st.just("metal"),
        st.dictionaries(names, st.text(max_size=20), max_size=3),
        names,
        functions,
    ),
    st.builds(runtime.GraphExecutorFactory, st.text(max_size=40), params, st.text(max_size=9)),
    st.builds(runtime.AotExecutorFactory, params, st.text(max_size=9)),
    st.builds(lambda p: runtime.ConstLoaderModule(p, {"f": list(p)}), params),
    st.builds(runtime.JSONRuntimeModule, st.just("dnnl_json"), names, names, st.lists(names)),
    st.builds(runtime.CarriedSourceModule, st.text(max_size=40), names, st.lists(names)),
    st.builds(runtime.CarriedStaticLibraryModule, st.binary(max_size=40), st.lists(names)),
    st.builds(runtime.MetadataModule),
)


@given(modules, st.lists(modules, max_size=4))
def test_any_tree_is_dumped_parsed_and_dumped_to_the_same_bytes(root, children) -> None:
    """Every type re-encodes its decoded payload, and ends at the same offset."""
    for child in children:
        root.import_module(child)
    data = runtime.serialize_module_to_bytes(root, export_dso=False)
    back = runtime.deserialize_module_from_bytes(data)
    assert back.type_key == root.type_key
    assert [m.type_key for m in back.imported_modules] == [m.type_key for m in children]
    assert runtime.serialize_module_to_bytes(back, export_dso=False) == data


@pytest.mark.parametrize(
    "path", [p for p in GOLDEN if p.stat().st_size < 1200], ids=lambda p: p.stem
)
def test_golden_blob_with_any_byte_flipped(path) -> None:
    """Each byte in turn becomes 0, 255, and its complement."""
    blob = path.read_bytes()
    for index, byte in enumerate(blob):
        for value in {0, 255, byte ^ 255, byte ^ 1} - {byte}:
            _parse_and_use(blob[:index] + bytes([value]) + blob[index + 1 :])


def _parse_and_use(data: bytes) -> None:
    try:
        blob = runtime.blob.parse(data)
        root = runtime.blob.link_tree(blob, runtime.Module())
    except runtime.PackerError as error:
        assert isinstance(error, (runtime.BlobFormatError, runtime.LoaderNotFoundError))
        return
    assert len(b"".join(runtime.blob.dump(blob))) <= len(data)
    assert not root.implements_function("no such function", query_imports=True)
