"""The native core: checked opening of libraries, safe calls, tensors.

Types and documentation. The code is in native/python/, and has the docstrings of the public types
`Device`, `Handle` and `Reader` only. One file, since the extension is one module.
"""

from collections.abc import Callable
from inspect import Signature
from typing import Any, Final, Self, TypeVar, final

from .error import BlobFormatError
from .module import Module
from .structs.record import Types

T = TypeVar("T")

@final
class Library:
    """One open shared object; closed (dlclose) when the last reference is dropped."""

    def __new__(cls, path: str | bytes, *, name: str = ..., descriptor: int = -1) -> Library:
        """Open `path`; messages show `name` instead, if it is given.

        After a successful open the library owns `descriptor` and closes it when it is closed.
        """
    @property
    def path(self) -> str: ...
    @property
    def descriptor(self) -> int:
        """The descriptor of a file that was made from bytes, else -1."""
    @property
    def key(self) -> tuple[int, int, int, int]:
        """The (device, inode, size, mtime in ns) of the loaded file."""
    @property
    def ctime_ns(self) -> int:
        """The ctime (last change of content, links or mode) that the file had at the load."""
    @property
    def structure(self) -> int | None:
        """The CRC-32 of the blob's structure, or None if the library lists none."""
    def data(self, symbol: str) -> memoryview | None:
        """Return the read-only bytes of a data symbol, or None if this object does not define it.

        The view keeps the library open.
        """
    @property
    def pieces(self) -> tuple[int, memoryview] | None:
        """The file offset and the bytes that `map_pieces` mapped; `prove` them to read them."""
    def map_pieces(
        self,
        descriptor: int,
        offset: int,
        nbytes: int,
        piece_nbytes: int,
        verify: Callable[[int, int, bool], bytearray | None],
    ) -> None:
        """Map bytes of another file over the bytes of this library at the same offset.

        `offset` and `nbytes` are multiples of `piece_nbytes`, which is one of the page. A
        piece is unreadable until ``verify(first, count, is_copied)`` accepts it, which else raises,
        and returns the pieces for copies: see `prove`; a `Reader` copies. Raises LibraryLoadError
        if the library has no such read-only bytes, or if they cannot be mapped.
        """
    def symbols(self, prefix: str) -> list[str]:
        """Return the names of the functions and data of this object that begin with `prefix`."""
    def function(self, name: str, owner: object) -> Function | None:
        """Return the function of this name, or None; it keeps `owner` and this library alive.

        The symbol is ``__tvm_ffi_<name>``, a safe call. Without it, it is ``<name>``, a packed C
        function, if its metadata or `declare_packed` declares it or if TVM built the library.
        """
    def has_code(self, name: str) -> bool:
        """Return True if this object defines a function ``<name>``, whatever its C type."""
    def address(self, name: str) -> int | None:
        """Return the address of the function ``<name>`` of this object, or None."""
    def call_for(self, library: Library, /) -> None:
        """Keep the library whose code this one calls open; handles of both are of one library.

        Raises TypeError for another type, or at a second call.
        """
    def declare_packed(self, name: str) -> bool:
        """Declare ``<name>`` a packed C function; return False if there is no such function.

        Call it only for a name that `function` does not find.
        """
    def bind(self, module: object) -> None:
        """Let the library's code call the module's imports; stores a weak reference to it."""

@final
class SystemLibrary:
    """The symbols that statically linked models with one prefix registered in this process."""

    def __new__(cls, symbol_prefix: str) -> SystemLibrary: ...
    @property
    def path(self) -> str:
        """The name that messages show."""
    @property
    def structure(self) -> int | None:
        """The CRC-32 of the blob's structure, or None if the models list none.

        Verifies everything that the models list. Raises LibraryLoadError if a listed symbol is
        missing or its bytes have changed.
        """
    def data(self, symbol: str) -> memoryview | None:
        """Return the read-only bytes of a blob, or of a text with its final NUL, or None."""
    def symbols(self, start: str) -> list[str]:
        """Return the names that begin with `start` and the library's prefix, without the prefix."""
    def function(self, name: str, owner: object) -> Function | None:
        """Return the function ``<prefix><name>``, else ``<name>``, else None.

        The function keeps `owner` alive.
        """
    def bind(self, module: object) -> None:
        """Let the models' code call the module's imports; stores a weak reference to it."""

@final
class ElfFile:
    """A statically checked shared object on disk, which is not loaded."""

    def __new__(cls, path: str | bytes, machine: int | None = None, *, name: str = ...) -> ElfFile:
        """Check `path` for an e_machine, or with 0 for that of its header.

        Messages show `name` instead of the path, if it is given.
        """
    @property
    def machine(self) -> int: ...
    @property
    def path(self) -> str: ...
    def symbol(self, name: str) -> tuple[int, int] | None:
        """Return the (file offset, nbytes) of a defined symbol, or None."""
    def data(self, name: str, /) -> tuple[int, int] | None:
        """As `symbol`, but raise LibraryLoadError if a load could not read the data."""
    def is_separate(self, name: str, /) -> bool:
        """Return True if a data symbol has a segment that nothing else refers to.

        No code, relocation, other symbol or program header needs its bytes; so they can be mapped
        after the library was opened.
        """
    def view(self, name: str, /) -> memoryview | None:
        """Return the read-only bytes of such data, or None; the view keeps the file mapped."""
    def symbols(self, prefix: str, /) -> list[str]:
        """Return the names of the defined functions and data that begin with `prefix`."""
    def checksums(self, symbol: str) -> int | None:
        """Verify the list at this symbol, as a load does with ``__packer_checksums``.

        Returns the CRC-32 of the blob's structure, or None if there is no list or if the list
        names no blob.
        """
    def check_cpu(self) -> None:
        """Raise LibraryLoadError if this processor lacks the lowest CPU level, or that of DSO_CPU.

        A load makes the same check.
        """
    def open_needed(
        self, folder: str, opens_all: bool, open: Callable[[str, str, int, bool], Library], /
    ) -> None:
        """Have the libraries opened that the file needs outside of the system's folders.

        `folder` is that of $ORIGIN, or "". If `opens_all`, the system's libraries too; else these
        only where the loader would search other folders first. `open` gets the name, the path, a
        descriptor of the file, which it owns, and whether the file names the folder; it returns the
        open library. Raises LibraryLoadError with reason ``"needed"`` if one is not found, or if
        another one is open under its name.
        """
    def dynamic_names(self, tag: int, /) -> list[str]:
        """Return the texts of DT_NEEDED, DT_SONAME, DT_RPATH or DT_RUNPATH, in order.

        Raises ValueError for another tag.
        """
    def unbound(self) -> list[str]:
        """Return the names of the undefined symbols that are neither weak nor have a version.

        A linker gives an undefined symbol the version that a library of the link defines.
        """

@final
class Function:
    """A function of a library: vectorcall over the safe-call ABI."""

    def __call__(self, *args: Any) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def signature(self) -> str | None: ...
    @property
    def __doc__(self) -> str | None: ...  # type: ignore[override]
    @property
    def metadata(self) -> str | None: ...
    @property
    def owner(self) -> object: ...
    @property
    def __signature__(self) -> Signature | None: ...
    @property
    def _names(self) -> tuple[str, ...] | None:
        """The names of the parameters, of a function without declared types."""
    @property
    def _declared(
        self,
    ) -> tuple[
        list[tuple[str, str]],
        str | None,
        list[tuple[str, str]],
        list[tuple[str, str]],
        list[tuple[str, str]],
    ]:
        """The parameters, the result, the outs, the defaults (as JSON) and the structs.

        Each is a list of (name, code); a struct's text is ``size alignment field:code@offset``.
        """

@final
class Handle:
    """An object of a library.

    A function that returns a pointer to an incomplete struct, or a struct that is used as such,
    returns a handle. It keeps its library open. If the function declares ``free``, that function
    is called once: by `close`, at the end of a ``with`` block, or with the last reference.

    Attributes
    ----------
    kind : str or None
        The name of the C struct; None for ``void *``. A function accepts its own kind only; a
        handle without a kind is accepted by all.
    address : int
        The pointer.
    closed : bool
        True if the object, or the object that it belongs to, was released.

    Notes
    -----
    If the library has the layout of the struct, its members are attributes, which are read and
    written in place: ``node.next.value = 3``; members of any name are items, ``node["kind"]``. A
    part (a struct, union or array in it, or what a pointer member points to) is a handle too, which
    keeps this one alive and cannot be used after it is closed. An array has items and a length.
    ``numpy.asarray(handle)`` and ``memoryview(handle)`` share the memory.

    The use of a closed handle raises ValueError. Two handles are equal if address and kind are.

    An exception in ``free`` is raised by `close`. With the last reference it cannot be raised:
    `sys.unraisablehook` gets it.
    """

    @property
    def kind(self) -> str | None: ...
    @property
    def address(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None:
        """Release the object now; later uses of the handle are errors.

        Raises ValueError if a running call or a view uses it. A second call has no effect.
        """
    def array(self, count: int | None, /) -> Handle:
        """Return `count` items in memory, from the one that the handle points to on.

        None stands for the items before the first zero, as in text: ``bytes(p.array(None))``.
        C does not tell how many there are: a wrong count reads and writes other memory. Raises
        ValueError if `count` is negative, TypeError if the type of the items is unknown.
        """
    def pointer(self, name: str, /) -> Handle | None:
        """Return what a member points to, also ``char *``, which is text as an attribute.

        Raises KeyError if there is no such member, TypeError if it is not a pointer.
        """
    def __getitem__(self, key: str | int | slice, /) -> Any: ...
    def __setitem__(self, key: str | int, value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

@final
class DeviceCode:
    """The code of a device module; built for a device at the first launch on it."""

    def __new__(cls, type_key: str, fmt: str, data: memoryview) -> DeviceCode: ...
    def function(
        self,
        name: str,
        code_name: str,
        arg_types: tuple[tuple[int, int, int], ...],
        launch_param_tags: tuple[str, ...],
        facts: str,
        owner: object,
        /,
    ) -> Function:
        """Return the kernel as a Function; raise DeviceError if its signature is unsupported."""

def copy_range(source: int, at: int, output: int, to: int, nbytes: int, /) -> int:
    """Copy bytes between two descriptors through memory, without the GIL.

    Returns the number of copied bytes. It is smaller than `nbytes` if the source ends early or if
    a read or write fails.
    """

def reserve(output: int, to: int, nbytes: int, /) -> None:
    """Allocate the file's blocks before they are written (fallocate(2)).

    Errors are ignored: the writes that follow report them.
    """

def crc32(data: bytes | bytearray | memoryview, /) -> int:
    """Return the CRC-32 of contiguous bytes, as zlib computes it."""

def prove(view: memoryview, /) -> memoryview:
    """Verify the bytes of a view, if they are mapped pieces of a library; return the view.

    Raises what the callable of `Library.map_pieces` raises.
    """

class Reader:
    """Reads primitives of a blob; its docstring is in the core."""

    offset: int
    last_entry: bool
    path: Final[str | None]
    where: Final[str]
    dialect: Final[str]

    def __init__(
        self,
        data: Any,
        *,
        path: str | None = None,
        where: str = "blob",
        dialect: str = "tvm",
    ) -> None: ...
    @property
    def remaining(self) -> int: ...
    def error(self, what: str, offset: int | None = None) -> BlobFormatError: ...
    def read_u64(self) -> int: ...
    def read_u32(self) -> int: ...
    def read_i64(self) -> int: ...
    def read_i32(self) -> int: ...
    def read_dtype(self) -> tuple[int, int, int]: ...
    def read_raw(self, nbytes: int, what: str = "bytes") -> memoryview: ...
    def read_data(self, nbytes: int, what: str = "bytes") -> memoryview: ...
    def read_bytes(self) -> memoryview: ...
    def read_string(self) -> str: ...
    def read_name(self) -> str: ...
    def read_sized(self) -> Self: ...
    def read_count(self, min_nbytes: int, most: int = ...) -> int: ...
    def read_vector(
        self, read_element: Callable[[], T], min_nbytes: int = 1, most: int = ...
    ) -> list[T]: ...
    def read_u64_vector(self, most: int = ...) -> tuple[int, ...]: ...
    def read_map(self, read_value: Callable[[], T], min_nbytes: int = 1) -> dict[str, T]: ...
    def part(self, start: int, end: int, /) -> Self: ...
    def accepted(self, type_key: str, /) -> Self:
        """Read a payload that the core accepts, and return a reader of it.

        Key ``"params"`` is a params dict file, ``"weights file"`` a safetensors file.
        """
    def ends_entry(self) -> bool: ...
    def _read_ndarray(self) -> tuple[memoryview, tuple[int, ...], tuple[int, int, int], bool]:
        """Read an NDArray; return its data, shape and dtype, and True if the data is complete."""
    def _weights_header(
        self, header: memoryview, start: int, /
    ) -> tuple[
        dict[str, tuple[int, int, tuple[int, int, int], tuple[int, ...]]], dict[str, str], int
    ]:
        """Parse and check the header of a safetensors file, which begins at offset `start`.

        Returns (begin, end, dtype, shape) of each tensor, offsets in the data area; the value of
        ``__metadata__``; and the size of the data area.
        """

def parse_blob(
    reader: Reader,
    manifest: bytes | memoryview | None,
    structure: int | None,
    is_symbol: bool,
    /,
) -> tuple[
    list[tuple[str, int, int, Module | None, bool]],
    tuple[int, ...] | None,
    tuple[int, ...] | None,
]:
    """Parse a blob from a reader at its start, and return its entries and its import tree.

    An entry is (key, offset, nbytes, module, is_carried). `runtime.payloads` loads the module of a
    type that libdso does not know; `is_carried` is true if it has no loader. The payloads of other
    types were accepted by libdso. `structure` is the CRC-32 that the library lists. If `is_symbol`,
    the header of the symbol precedes the blob; offsets count from its end. Raises BlobFormatError,
    LoaderNotFoundError, and what a loader raises.
    """

def is_provided(name: str, /) -> bool:
    """Return True if a load binds an undefined function of this name to the core."""

def left_out_hint(record: memoryview, name: str, /) -> str:
    """Return why an export left a function out, as the end of a message.

    It is an empty text if the record does not name the function, or is damaged.
    """

def has_variable(name: str, /) -> bool:
    """Return True if the environment has a variable."""

def has_driver(type_key: str, /) -> bool:
    """Return True if this machine has the driver library for this type key; opens that library."""

def cuda_images(data: bytes | memoryview, /) -> list[tuple[str, int, str]]:
    """Return (kind, capability, suffix) of each image in PTX, a cubin or a fatbin.

    Raises ValueError for other or damaged bytes.
    """

def built_in_function(name: str, /) -> Function | None:
    """Return a global function that every program has, or None."""

def built_in_names() -> list[str]:
    """Return the names of the global functions that every program has."""

class TensorBase:
    """A dense array over borrowed or owned memory, laid out as a DLTensor."""

    def __new__(
        cls,
        data: Any,
        shape: tuple[int, ...],
        dtype_code: tuple[int, int, int],
        *,
        incomplete: bool = False,
    ) -> TensorBase: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype_code(self) -> tuple[int, int, int]: ...
    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
    @property
    def nbytes(self) -> int: ...
    def _prove(self) -> None:
        """Verify the bytes, if they are mapped from a signed file and were not verified yet."""
    @property
    def raw(self) -> memoryview:
        """The bytes of the source, possibly unaligned or incomplete."""
    @property
    def readonly(self) -> bool: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule that keeps the memory, or raise BufferError."""
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def _copy_from(self, other: TensorBase, /) -> None: ...

@final
class Device:
    """A device: a kind (``"opencl"``, ``"opencl:1"`` or a DLDeviceType) and an index."""

    def __new__(cls, kind: str | int | Device, index: int = 0) -> Device: ...
    @property
    def kind(self) -> str: ...
    @property
    def device_type(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def exist(self) -> bool:
        """True if the driver is installed and reports this device."""
    @property
    def name(self) -> str:
        """The name that the driver reports; raises DeviceError if the device is unavailable."""
    def sync(self) -> None:
        """Wait for all work launched on the device; raise DeviceError if any of it failed."""

def empty(
    shape: tuple[int, ...], dtype_code: tuple[int, int, int], device: str | int | Device, /
) -> TensorBase:
    """Return a new Tensor on a device, with uninitialised elements."""

def from_dlpack(source: object, /) -> TensorBase:
    """Return a Tensor that shares the memory of an array with ``__dlpack__``, or of a capsule."""

@final
class Graph:
    """A checked graph of operators; bound to functions and memory it can run."""

    inputs: Final[tuple[str, ...]]
    functions: Final[frozenset[str]]
    devices: Final[list[Device]]

    def __new__(cls, source: str | Callable[..., Any], where: str = "graph") -> Graph:
        """Parse graph JSON, or read the metadata that a library's function returns.

        `inputs` are the names by index, `functions` the names that operators call; `devices` have
        arrays of the bound graph. Raises BlobFormatError, where `where` is the graph's name.
        """
    def set_params(self, params: dict[str, Any], where: str, /) -> None:
        """Check parameters, all Tensors; set them if the graph is bound.

        Raises BlobFormatError, and sets none, if the graph has no such input, or one of another
        shape or data type.
        """
    def bind(self, find: Callable[[str], Any], devices: list[Device], /) -> None:
        """Allocate the arrays on devices; ``find(name)`` returns an operator, or None."""
    def call(self, name: str, /, *args: str | int | Any) -> Any:
        """Call a function of the bound graph: a name of TVM's GraphModule."""
    def time(self, rounds: int, /) -> list[tuple[str, str, float]]:
        """Run the bound graph; return name, function and mean seconds of each operator."""

def handle_at(
    function: Function, address: int, kind: str | None, is_const: bool = False, /
) -> Handle | None:
    """Return a Handle that releases nothing, or None for the address 0.

    It keeps the library of `function` open.
    """

def handle_new(model: object, name: str, /) -> Handle | None:
    """Return a Handle of zeroed memory for a type by its name, or None if it is not known yet."""

def handle_allocate(library: object, owner: object, type: CType, /) -> Handle:
    """Return a Handle of zeroed memory for a value of a type, which it frees."""

def handle_types_match(one: Handle, other: Handle, /) -> bool:
    """Return True if two handles are of the same library."""

def c_types(library: object, /) -> Types:
    """Return the types of a library, by the kind of a handle."""

def report_unraisable(error: BaseException, function: object, /) -> None:
    """Report an exception of a function that C code called."""

def c_value(handle: Handle, type: CType, data: bytes, /) -> Any:
    """Return a value of C, whose pointers belong to a handle."""

def c_type_of(handle: Handle, /) -> CType:
    """Return the type of what a handle points to; raise TypeError if it is unknown."""

@final
class CMember:
    """A member of a struct or union."""

    @property
    def type(self) -> CType: ...
    @property
    def offset(self) -> int: ...

@final
class CType:
    """The type of a C value that Python reads and writes in place.

    `how` is a letter of the struct module for a number, or of c_type.h.
    """

    def __new__(
        cls,
        name: str | None,
        code: str,
        how: str,
        size: int,
        target: CType | None = None,
        count: int = 0,
        is_const: bool = False,
        format: bytes | None = None,
        alignment: int = 0,
    ) -> CType: ...
    def set_members(
        self, members: dict[str, tuple[CType, int, int, int]], own: dict[str, None], /
    ) -> None:
        """Set the members, name -> (type, offset, bit, width); leave out attributes in `own`."""
    @property
    def name(self) -> str | None: ...
    @property
    def code(self) -> str: ...
    @property
    def format(self) -> bytes | None: ...
    @property
    def target(self) -> CType | None: ...
    @property
    def members(self) -> dict[str, CMember] | None: ...
    @property
    def alignment(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def count(self) -> int: ...

def handle_belongs(function: Function, handle: Handle, /) -> bool:
    """Return True if a handle is of the same library as a function."""

def buffer_address(view: memoryview, /) -> int:
    """Return the address of a memoryview's bytes."""

def memory_at(address: int, nbytes: int, owner: object, /) -> memoryview:
    """View the memory at an address that a library returned; `owner` keeps it mapped.

    If `nbytes` is -1, the view ends before the first NUL. Raises ValueError if the address is
    NULL or if the bytes extend beyond the image's segment that contains the address.
    """

def json_count(text: str, /) -> tuple[int, int, int]:
    """Return JSON text's depth, an upper bound of its values, and the digits of its longest number.

    One pass in constant memory. Callers check the counts before they pass the text to a parser.
    """

def tree_changed() -> None:
    """Expire the import caches, after a change of an import tree or of the global functions."""

def weights_dtypes() -> dict[str, tuple[int, int, int]]:
    """Return the data types of safetensors by name, as DLDataType (code, bits, lanes)."""

@final
class Bytecode:
    """Verified bytecode of relax's virtual machine."""

    def __new__(
        cls,
        functions: tuple[tuple[bytes, int, int, int, int, int, int], ...],
        num_constants: int,
        offsets: Any,
        words: Any,
    ) -> Bytecode:
        """Verify rows of (name, kind, start, end, num_args, register_file_size, num_params).

        Raises BytecodeError if a row, an offset or a word is invalid.
        """
    def weight_constants(self) -> list[int]:
        """The indices of the constants that the code passes to ``dso.weight``."""

@final
class Session:
    """The state of a model, from call to call."""

    def __new__(cls, most: int) -> Session:
        """Make one without state; a state has at most `most` rows, 0 for no bound."""
    @property
    def length(self) -> int:
        """The rows that calls appended."""
    def function(
        self, machine: VirtualMachine, name: str, params: tuple[str, ...], owner: object, /
    ) -> Function | None:
        """Return a function of a machine that uses the session and keeps `owner` alive."""
    def fork(self) -> Session:
        """Return a session with the same state."""
    def reset(self) -> None:
        """Forget the state, and keep its memory."""

@final
class VirtualMachine:
    """Bytecode bound to constants, functions and devices."""

    def __new__(
        cls,
        bytecode: Bytecode,
        constants: list[tuple[int, Any]],
        weights: list[Any],
        callees: list[Any],
        devices: list[Any],
    ) -> VirtualMachine:
        """Bind bytecode; `callees` has None for functions in bytecode and for built-ins.

        `weights` has for each constant the tensor that it names, or None.
        """
    def set_instrument(self, instrument: Callable[..., Any] | None, /) -> None:
        """Let later calls run a function before and after each function that the code calls."""

    def measure(self) -> None:
        """Let later calls measure each function that the code calls."""
    def costs(self) -> list[tuple[str, str, int, int]]:
        """Return the calls so far: (function, called function, calls, nanoseconds).

        A row for each instruction that was run, in the order of the code.
        """
    def function(self, name: str, params: tuple[str, ...], owner: object, /) -> Function | None:
        """Return a function of the bytecode, which keeps `owner` alive, or None.

        `params` are the names of its parameters; ``owner.signature(name)`` is its signature.
        """

def fail_allocation(n: int, /) -> int:
    """For tests: make the core's n-th allocation from now on fail; 0 disables this.

    Returns how many allocations the request before this one still had to wait for.
    """

def vm_builtin_names() -> list[str]:
    """Return the names of the built-in functions of every virtual machine."""
