"""The native core: checked opening of libraries, safe calls, tensors. Types only; see native/."""

from typing import Any, final

@final
class Library:
    """One open shared object; closed (dlclose) when the last reference goes."""

    def __new__(cls, path: str | bytes, *, name: str = ..., descriptor: int = -1) -> Library:
        """Open `path`; `name` stands for it in messages; `descriptor` is closed with the library.

        A descriptor of the file is taken over once the library is open.
        """
    @property
    def path(self) -> str: ...
    @property
    def descriptor(self) -> int:
        """The descriptor of a file that was made of bytes, else -1."""
    @property
    def key(self) -> tuple[int, int, int, int]:
        """The (device, inode, size, mtime in ns) of the file that is loaded."""
    @property
    def ctime_ns(self) -> int:
        """When that file had last changed as it was loaded: content, links or mode."""
    @property
    def structure(self) -> int | None:
        """The CRC-32 of the blob's structure, if the library lists one."""
    def data(self, symbol: str) -> memoryview | None:
        """The read-only bytes behind a data symbol that this very object defines; keeps it open."""
    def symbols(self, prefix: str) -> list[str]:
        """The names of the functions and data that this very object defines and begin so."""
    def function(self, name: str, owner: object) -> Function | None:
        """The function of this name; it keeps `owner` and this library alive.

        That is ``__tvm_ffi_<name>``, a safe call; else ``<name>``, a packed C function, if its
        facts or `declare_packed` say so, or TVM made the library.
        """
    def has_code(self, name: str) -> bool:
        """Whether this very object defines a function ``<name>``, of whatever type."""
    def declare_packed(self, name: str) -> bool:
        """Let ``<name>`` be a packed C function; False if there is no such function.

        Only for a name that `function` does not find.
        """
    def bind(self, module: object) -> None:
        """Let the library's code call what this module imports; keeps a weak reference."""

@final
class SystemLibrary:
    """The symbols that statically linked models with one prefix registered in this process."""

    def __new__(cls, symbol_prefix: str) -> SystemLibrary: ...
    @property
    def path(self) -> str:
        """What messages call it."""
    @property
    def structure(self) -> int | None:
        """The CRC-32 of the blob's structure, if the models list one.

        All that they list is verified; LibraryLoadError if any of it is lost or changed.
        """
    def data(self, symbol: str) -> memoryview | None:
        """The read-only bytes of a blob, or of text with the NUL that ends it."""
    def symbols(self, start: str) -> list[str]:
        """The names that begin with `start`, without the library's prefix behind it."""
    def function(self, name: str, owner: object) -> Function | None:
        """The function ``<prefix><name>``, or else ``<name>``; it keeps `owner` alive."""
    def bind(self, module: object) -> None:
        """Let the models' code call the imports of this module."""

@final
class ElfFile:
    """A statically checked shared object on disk; nothing of it is loaded."""

    def __new__(cls, path: str | bytes, machine: int | None = None) -> ElfFile: ...
    @property
    def machine(self) -> int: ...
    def symbol(self, name: str) -> tuple[int, int] | None:
        """The (file offset, nbytes) of a symbol that the object defines, or None."""
    def data(self, name: str, /) -> tuple[int, int] | None:
        """As `symbol`, of data that a load can read; else raises as ``Library.data`` does."""
    def checksums(self, symbol: str) -> int | None:
        """Verify what this symbol lists, as a load does with ``__packer_checksums``.

        Returns the CRC-32 of the blob's structure, or None if there is no list or no blob in it.
        """
    def undefined(self) -> list[str]:
        """The names of the dynamic symbols that others are to define."""

@final
class Function:
    """A callable of a library: vectorcall over the safe-call ABI."""

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

@final
class DeviceCode:
    """The code of a device module; built for a device when a kernel is launched there."""

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
        """The kernel as a Function; DeviceError where its signature cannot be launched."""

def copy_range(source: int, at: int, output: int, to: int, nbytes: int, /) -> int:
    """Copy bytes between two descriptors through memory, without the GIL.

    Returns how many were copied: fewer where the source ends, or one cannot be read or written.
    """

def reserve(output: int, to: int, nbytes: int, /) -> None:
    """Have the file system find the blocks of what is about to be written (fallocate(2)).

    Where it cannot, nothing happens: the writes will tell.
    """

def crc32(data: bytes | bytearray | memoryview, /) -> int:
    """The CRC-32 of contiguous bytes, as zlib computes it."""

def has_driver(type_key: str, /) -> bool:
    """Whether modules of this type key can run on this machine; opens the driver's library."""

set_device: Function
"""(device_type, device_id): choose this thread's device of a kind; DeviceError if there is none."""

class TensorBase:
    """A dense CPU array over borrowed or own bytes, laid out as a DLTensor."""

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
        """The device that has the memory."""
    @property
    def nbytes(self) -> int: ...
    @property
    def raw(self) -> memoryview:
        """The bytes as they were given, unaligned and possibly incomplete."""
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
        """Share the memory, which the capsule keeps; BufferError where that cannot be."""
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def _copy_from(self, other: TensorBase, /) -> None: ...

@final
class Device:
    """A device: a kind, by name (``"opencl"``, ``"opencl:1"``) or DLDeviceType, and an index."""

    def __new__(cls, kind: str | int | Device, index: int = 0) -> Device: ...
    @property
    def kind(self) -> str: ...
    @property
    def device_type(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def exist(self) -> bool:
        """Whether it is there, with a driver."""
    @property
    def name(self) -> str:
        """What its driver calls it; DeviceError where there is none."""
    def sync(self) -> None:
        """Wait for all work that was launched on it; DeviceError if that went wrong."""

def empty(
    shape: tuple[int, ...], dtype_code: tuple[int, int, int], device: str | int | Device, /
) -> TensorBase:
    """A Tensor on a device, whose elements are not set."""

def from_dlpack(source: object, /) -> TensorBase:
    """A Tensor over the memory of an array with ``__dlpack__``, or of a capsule."""

@final
class CallSequence:
    """Calls bound once, over tensors that are their arguments; without the GIL while it runs."""

    def __new__(
        cls, tensors: list[Any], calls: list[tuple[str, Any, tuple[int, ...]]]
    ) -> CallSequence:
        """Take the tensors of all slots, and of each call name, callable and slots.

        None for a callable is a copy from the first slot to the second.
        """
    def run(self, stop: int = ..., /) -> None:
        """Make the calls in order, or those before `stop`."""
    def time(self, rounds: int, /) -> list[float]:
        """Make all calls so many times; return the mean seconds of each."""
    def is_fit(self, slot: int, tensor: Any, /) -> bool:
        """Whether calls may use this tensor, which is of the slot's shape, type and device.

        It has to be compact, writable where a function says that it writes, and aligned to 64
        bytes where one is not declared to packer, and may count on what TVM promises.
        """
    def bind(self, slot: int, tensor: Any, /) -> None:
        """Let a slot be this tensor, which is fit for it."""

def call_for_address(function: Any, /, *ints: int) -> int | None:
    """Call a function of integers that returns an address, or None."""

def memory_at(address: int, nbytes: int, owner: object, /) -> memoryview:
    """View memory that a library names, which `owner` keeps; -1 bytes end at a NUL, left out.

    ValueError: it is NULL, or reaches beyond the segment of the image that it lies in.
    """

def tensor_view(
    tensor: TensorBase, shape: tuple[int, ...], dtype_code: tuple[int, int, int], /
) -> Any:
    """A Tensor of another one's memory, on any device, in another shape; it keeps the memory."""

def tensor_nbytes(shape: tuple[int, ...], dtype_code: tuple[int, int, int], /) -> int:
    """The bytes of a compact tensor, with elements of less than a byte packed.

    ValueError: an extent is negative, or the size is beyond the address space.
    """

def json_count(text: str, /) -> tuple[int, int, int]:
    """The depth, an upper bound of the values, and the digits of the longest number of JSON text.

    Found in one pass and constant memory, so that a parser is only given what it can hold.
    """

def tree_changed() -> None:
    """Let host code look up anew what it calls: some tree or the global functions changed."""

def weights_data_nbytes(header: Any, /) -> int:
    """The bytes of data that a safetensors header speaks of; -1: parse it to know."""

@final
class Bytecode:
    """Verified bytecode of relax's virtual machine."""

    def __new__(
        cls,
        functions: tuple[tuple[str, int, int, int, int, int, int], ...],
        num_constants: int,
        offsets: Any,
        words: Any,
    ) -> Bytecode:
        """Verify rows of (name, kind, start, end, num_args, register_file_size, num_params).

        BytecodeError: a row, an offset or a word is wrong.
        """

@final
class VirtualMachine:
    """Bytecode bound to constants, functions and devices."""

    def __new__(
        cls,
        bytecode: Bytecode,
        constants: list[tuple[int, Any]],
        callees: list[Any],
        devices: list[Any],
    ) -> VirtualMachine:
        """Bind: a callable for each function of the table, or None for one of the machine's own."""
    def function(self, name: str, signature: str, owner: object, /) -> Function | None:
        """A function of the bytecode, which keeps `owner` alive; None where there is none."""

def fail_allocation(n: int, /) -> int:
    """For tests: let the core's n-th allocation from now on fail; 0: none."""

def vm_builtin_names() -> list[str]:
    """The functions that every virtual machine has."""
