"""Device modules: kernels as source or binary, with their signatures.

The fields of the payload depend on the type key, and on whether TVM was built with the backend:

    cuda, opencl, hip (alias hsaco), hexagon, aocl, sdaccel    fmt, functions, data
    metal, vulkan, webgpu, without backend                     fmt, functions, data
    metal, with backend                                        version, sources, functions, fmt
    vulkan, with backend                                       fmt, functions, shaders
    webgpu, with backend                                       functions, sources

    fmt        string
    functions  map<string, FunctionInfo>
    data       bytes
    version    string "0.1.0"
    sources    map<string, string>
    shaders    map<string, {u32 flag, vector<u32> words}>
    FunctionInfo = string name, vector<DLDataType> arg_types, vector<string> launch_param_tags

The layout with backend is tried first, and used if it ends at the next key or at the blob's end.
In dialect tvm-ffi a vector<i32> follows each FunctionInfo, and

    metal, with backend                                        fmt, functions, codes
    vulkan, with backend                                       fmt, functions, blobs

    codes, blobs    map<string, bytes>; the bytes of a blob are u32 flag, vector<u32> words

One file, since the readers of the fields make the module, and the module calls their writers.
"""

from __future__ import annotations

from .._core import DeviceCode, has_driver
from ..abi import BINARY_SERIALIZABLE, RUNNABLE
from ..error import BlobFormatError, DeviceError, FunctionNotFoundError, PackerError
from ..module import Module
from ..tensors.dtype import dtype_to_string, string_to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from typing_extensions import Buffer

    from .._core import Function
    from ..serial.stream import Reader, Writer

METAL_VERSION = "0.1.0"

# CUDA accepts 32,764 bytes of arguments, others fewer; TVM has nine launch tags.
MAX_ARGUMENTS, MAX_LAUNCH_TAGS = 8192, 256

# The codes in metadata of the types of numbers; other types keep their names.
_CODES = {
    f"{name}{bits}": f"{name[0]}{bits}" for name in ("int", "uint") for bits in (8, 16, 32, 64)
}
_CODES |= {f"float{bits}": f"f{bits}" for bits in (16, 32, 64)}

SOURCE = ("fmt", "functions", "data")
METAL = ("version", "sources", "functions", "fmt")
VULKAN = ("fmt", "functions", "shaders")
WEBGPU = ("functions", "sources")

# The possible layouts of each type key, in the order in which they are tried.
LAYOUTS: dict[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("cuda", "opencl", "hip", "hexagon", "aocl", "sdaccel"), (SOURCE,)),
    "metal": (METAL, SOURCE),
    "vulkan": (VULKAN, SOURCE),
    "webgpu": (WEBGPU, SOURCE),
}
ALIASES = {"hsaco": "hip"}

# The layouts that differ in dialect tvm-ffi.
_FFI_LAYOUTS = {METAL: ("fmt", "functions", "codes"), VULKAN: ("fmt", "functions", "blobs")}

# The type keys whose kernels the native core can launch.
LAUNCHED = ("opencl", "cuda")
_TEXT_FORMATS = ("ptx", "cuda", "cl", "metal", "hip", "wgsl", "c", "aocl", "ll", "asm", "s")


class FunctionInfo:
    """The signature of a kernel.

    Parameters
    ----------
    name : str
        The kernel's name in its source or binary.
    arg_types : iterable of str
        Data types by name: ``"handle"``, ``"int32"``, ``"float32x4"``.
    launch_param_tags : iterable of str
        The launch integers that follow the arguments, in order: ``"blockIdx.x"``, ...,
        ``"threadIdx.z"``, ``"tir.use_dyn_shared_memory"`` (bytes).
    arg_extra_tags : iterable of int
        Further tags of the arguments (TVM 0.27); only dialect ``tvm-ffi`` has them.

    Raises
    ------
    TypeError
        A str was passed instead of an iterable.
    ValueError
        An argument type is unknown.
    """

    __slots__ = ("arg_extra_tags", "arg_types", "launch_param_tags", "name")

    def __init__(
        self,
        name: str,
        arg_types: Iterable[str] = (),
        launch_param_tags: Iterable[str] = (),
        arg_extra_tags: Iterable[int] = (),
    ) -> None:
        self.name = name
        self.arg_types = _words(arg_types, "arg_types")
        self.launch_param_tags = _words(launch_param_tags, "launch_param_tags")
        self.arg_extra_tags = tuple(arg_extra_tags)
        for arg_type in dict.fromkeys(self.arg_types):
            string_to_dtype(arg_type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionInfo) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple[object, ...]:
        return self.name, self.arg_types, self.launch_param_tags, self.arg_extra_tags

    def __repr__(self) -> str:
        return f"FunctionInfo({self.name!r}, {self.arg_types!r}, {self.launch_param_tags!r})"


class Shader:
    """One SPIR-V shader of a vulkan module with backend.

    Parameters
    ----------
    flag : int
        TVM's flag word, u32.
    words : buffer
        The SPIR-V words, 4 bytes each.
    """

    __slots__ = ("flag", "words")

    def __init__(self, flag: int, words: bytes | memoryview) -> None:
        self.flag = flag
        self.words = memoryview(words)


class DeviceModule(Module):
    """Kernels for a device, as source or binary.

    Parameters
    ----------
    type_key : str
        ``"cuda"``, ``"opencl"``, ``"hip"``, ``"metal"``, ``"vulkan"``, ``"webgpu"``, ...
    data : str, buffer, or mapping
        The code of all kernels; or one source per kernel (metal, webgpu: str; vulkan: Shader).
        Kept, not copied.
    fmt : str
        The format of the code: ``"ptx"``, ``"cubin"``, ``"cl"``, ``"spirv"``, ``"metal"``, ...
    functions : mapping of str to FunctionInfo, or iterable of FunctionInfo
        The kernels.

    Attributes
    ----------
    fmt : str
        As given; "" if the layout has none.
    functions : dict of str to FunctionInfo
        In wire order.
    data : memoryview or dict
        As given; bytes as a read-only view.
    path : str or None
        The file that it was loaded from, if it was a standalone file.

    Raises
    ------
    TypeError
        A function is not a FunctionInfo.
    ValueError
        The type key is not that of a device, or the code is a mapping where one text is needed.
    """

    def __init__(
        self,
        type_key: str,
        data: str | Buffer | Mapping[str, Any],
        fmt: str,
        functions: Mapping[str, FunctionInfo] | Iterable[FunctionInfo],
    ) -> None:
        if type_key not in LAYOUTS:
            raise ValueError(f"type key {type_key!r} is not a device; known: {', '.join(LAYOUTS)}")
        self.type_key = type_key
        self.fmt = fmt
        self.functions = _by_name(functions)
        self._code: DeviceCode | None = None
        self._is_read = False  # from a blob, whose bytes are written again
        self.path: str | None = None
        self.data: memoryview | dict[str, Any]
        self.layout: tuple[str, ...]
        if isinstance(data, str):
            data = data.encode()
        if hasattr(data, "items"):
            self.data = dict(data.items())
            self.layout = LAYOUTS[type_key][0]
            if self.layout is SOURCE:
                raise ValueError(f"a {type_key!r} module takes its code as one str or buffer")
        else:
            self.data = memoryview(data).cast("B").toreadonly()
            self.layout = SOURCE

    @property
    def property_mask(self) -> int:  # type: ignore[override]
        """Includes RUNNABLE if this machine has the driver; queried each time."""
        return BINARY_SERIALIZABLE | (RUNNABLE if has_driver(self.type_key) else 0)

    def function_names(self) -> list[str]:
        """The names of the kernels."""
        return list(self.functions)

    def find_function(self, name: str) -> Function | None:
        """Find a kernel.

        Parameters
        ----------
        name : str
            Its key in `functions`.

        Returns
        -------
        Function or None
            Takes the kernel's arguments, with tensors on the device for handles, then one integer
            per launch tag. None if the runtime does not support such devices.

        Raises
        ------
        DeviceError
            Its launch tags or argument types are invalid.

        Notes
        -----
        The driver is needed from the first call on. That builds the code for the device of the
        tensors, or for the thread's current one, and raises DeviceError if there is no driver or
        device, or the code is not for it. A call returns when the launch is queued; work on a
        device is done in the order of the calls, and copies wait for it.
        """
        info = self.functions.get(name)
        if info is None or self.type_key not in LAUNCHED:
            return None
        types = tuple(string_to_dtype(text) for text in info.arg_types)
        tags = info.launch_param_tags
        try:
            if self._code is None:
                assert isinstance(self.data, memoryview)
                self._code = DeviceCode(self.type_key, self.fmt, self.data)
            return self._code.function(name, info.name, types, tags, metadata_of(info), self)
        except ValueError as error:  # a NUL, or a lone surrogate
            text = f"kernel {name!r} of format {self.fmt!r}: {error}, expected names of plain text"
            raise DeviceError(text) from error

    def _not_found(self, name: str, query_imports: bool) -> FunctionNotFoundError:
        from ..device.kernel_meta import meta_path
        from ..device.kernel_source import left_out

        code = self.data if self.path is not None else None
        params = left_out(self.fmt, code).get(name) if isinstance(code, memoryview) else None
        if self.path is None or (self.functions and params is None):
            return super()._not_found(name, query_imports)
        reason = f"{self.path} does not declare its kernels and their parameters"
        if params is not None:
            unknown = next(text for text, type_ in params if type_ is None)
            reason = f"the type of its parameter {unknown!r} is unknown"
        text = (
            f"{self!r} has no function {name!r}: {reason}; write {meta_path(self.path)} beside it, "
            f"as DeviceModule.save does, or make a runtime.DeviceModule with FunctionInfo"
        )
        return FunctionNotFoundError(text, name=name, module=self.type_key)

    def get_source(self, fmt: str = "") -> str:
        """Return the code as text.

        Raises
        ------
        PackerError
            The code is binary, or of another format than `fmt`.
        """
        if fmt not in ("", self.fmt) or (self.layout is SOURCE and self.fmt not in _TEXT_FORMATS):
            return super().get_source(fmt or self.fmt)
        if isinstance(self.data, memoryview):
            return str(self.data, "utf-8", "replace")
        if not all(isinstance(code, str) for code in self.data.values()):
            return super().get_source(fmt or self.fmt)
        return "\n".join(self.data.values())

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the code as a file, and its kernels' signatures beside it.

        They are written to ``<name>.tvm_meta.json``, as by TVM; `runtime.load` reads both files.

        Raises
        ------
        PackerError
            The code is one source per kernel, or not of format `fmt`.
        """
        if not isinstance(self.data, memoryview) or fmt not in ("", self.fmt):
            raise PackerError(f"{self!r} of format {self.fmt!r} has no file of format {fmt!r}")
        with open(path, "wb") as file:
            file.write(self.data)
        if self.functions:
            from ..device.kernel_meta import write_meta

            write_meta(path, self.functions)

    def save_to_binary(self, writer: Writer) -> None:
        """Write the fields of the module's layout."""
        for field in wire_layout(self.layout, writer.dialect):
            _WRITE[field](writer, self)


def metadata_of(info: FunctionInfo) -> str:
    """Return the metadata of a kernel, as text like that of `__packer_fn_<name>`."""
    tags = [tag for tag in info.launch_param_tags if not tag.startswith("paramWriteAccess:")]
    arguments = [f"{text} arg{index}" for index, text in enumerate(info.arg_types)]
    codes = [f"arg{index}:{_CODES.get(text, text)}" for index, text in enumerate(info.arg_types)]
    return (
        "packer-function 1\n"
        f"type void({', '.join([*arguments, *tags])})\n"
        f"params {' '.join(codes + [f'{tag}:i64' for tag in tags])}\n"
        "doc A kernel. Its launch takes one integer per tag after the arguments: "
        f"{', '.join(tags) or 'none'}.\n"
    )


def decode(reader: Reader, type_key: str) -> DeviceModule:
    """Read the payload of a device's type key."""
    key = ALIASES.get(type_key, type_key)
    *real, last = LAYOUTS[key]
    start = reader.offset
    for layout in real:
        try:
            module = _read(reader, key, layout)
            if not reader.remaining:
                return module
        except BlobFormatError:
            pass
        reader.offset = start
    return _read(reader, key, last)


def _read(reader: Reader, type_key: str, layout: tuple[str, ...]) -> DeviceModule:
    names = wire_layout(layout, reader.dialect)
    fields: dict[str, Any] = {field: _READ[field](reader) for field in names}
    code = next(fields[name] for name in _CODE if name in fields)
    module = DeviceModule(type_key, code, fields.get("fmt", ""), fields["functions"])
    module._is_read = True
    return module


def wire_layout(layout: tuple[str, ...], dialect: str) -> tuple[str, ...]:
    """The fields of a layout in a dialect."""
    return _FFI_LAYOUTS.get(layout, layout) if dialect == "tvm-ffi" else layout


def _read_function_info(reader: Reader) -> FunctionInfo:
    has_extra_tags = reader.dialect == "tvm-ffi"
    return FunctionInfo(
        reader.read_name(),
        reader.read_vector(lambda: dtype_to_string(reader.read_dtype()), 4, MAX_ARGUMENTS),
        reader.read_vector(reader.read_name, 8, MAX_LAUNCH_TAGS),
        reader.read_vector(reader.read_i32, 4, MAX_ARGUMENTS) if has_extra_tags else (),
    )


def _write_function_info(writer: Writer, info: FunctionInfo) -> None:
    writer.write_string(info.name)
    writer.write_vector(info.arg_types, lambda text: writer.write_dtype(string_to_dtype(text)))
    writer.write_vector(info.launch_param_tags, writer.write_string)
    if writer.dialect == "tvm-ffi":
        writer.write_vector(info.arg_extra_tags, writer.write_i32)


def _read_version(reader: Reader) -> str:
    start = reader.offset
    version = reader.read_name()
    if version != METAL_VERSION:
        raise reader.error(f"metal version {version!r}, expected {METAL_VERSION!r}", start)
    return version


def _read_shader(reader: Reader) -> Shader:
    flag = reader.read_u32()
    return Shader(flag, reader.read_raw(4 * reader.read_count(4)))


def _write_shader(writer: Writer, shader: Shader) -> None:
    writer.write_u32(shader.flag)
    writer.write_u64(len(shader.words) // 4)
    writer.write_raw(shader.words)


def _code_to_write(module: DeviceModule) -> bytes | memoryview:
    """Return the code; OpenCL source that no blob contained gets TVM's lines."""
    assert isinstance(module.data, memoryview)
    if module._is_read or (module.type_key, module.fmt) != ("opencl", "cl"):
        return module.data
    from ..device.kernel_lines import with_kernel_lines

    return with_kernel_lines(module.data, module.functions)


def _bytes_of(code: str | memoryview) -> bytes | memoryview:
    return code.encode("utf-8", "surrogateescape") if isinstance(code, str) else code


def _read_code(reader: Reader) -> str | memoryview:
    data = reader.read_bytes()
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return data


# The fields that hold the code of kernels.
_CODE = ("data", "sources", "shaders", "codes", "blobs")

# Each field's reader and writer; a layout is a sequence of fields.
_READ: dict[str, Callable[[Reader], Any]] = {
    "fmt": lambda r: r.read_name(),
    "functions": lambda r: r.read_map(lambda: _read_function_info(r), 24),
    "data": lambda r: r.read_bytes(),
    "version": _read_version,
    "sources": lambda r: r.read_map(r.read_name, 8),
    "shaders": lambda r: r.read_map(lambda: _read_shader(r), 12),
    "codes": lambda r: r.read_map(lambda: _read_code(r), 8),
    "blobs": lambda r: r.read_map(lambda: _read_shader(r.read_sized()), 20),
}
_WRITE: dict[str, Callable[[Writer, Any], None]] = {
    "fmt": lambda w, m: w.write_string(m.fmt),
    "functions": lambda w, m: w.write_map(m.functions, lambda f: _write_function_info(w, f)),
    "data": lambda w, m: w.write_bytes(_code_to_write(m)),
    "version": lambda w, m: w.write_string(METAL_VERSION),
    "sources": lambda w, m: w.write_map(m.data, lambda code: w.write_bytes(_bytes_of(code))),
    "shaders": lambda w, m: w.write_map(m.data, lambda s: _write_shader(w, s)),
    "codes": lambda w, m: w.write_map(m.data, lambda code: w.write_bytes(_bytes_of(code))),
    "blobs": lambda w, m: w.write_map(
        m.data, lambda s: w.write_sized(lambda inner: _write_shader(inner, s))
    ),
}


def _by_name(functions: Any) -> dict[str, FunctionInfo]:
    if not hasattr(functions, "items"):
        functions = {getattr(info, "name", ""): info for info in functions}
    for info in functions.values():
        if not isinstance(info, FunctionInfo):
            raise TypeError(f"functions: expected runtime.FunctionInfo, found {info!r}")
    return dict(functions)


def _words(given: Iterable[str], name: str) -> tuple[str, ...]:
    if isinstance(given, str):  # it would be split into letters
        raise TypeError(f"{name}: expected a list of str, found {given!r}; write [{given!r}]")
    return tuple(given)
