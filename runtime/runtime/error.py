"""The error classes: one root, and each is also a builtin. One file: they are one hierarchy."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_NAMES = 20  # in a not-found message


class PackerError(Exception):
    """Root of every error that dso-packer raises.

    The message reads ``<path>: <where>: <what>, expected <x>, found <y>`` and ends with
    the fix, if there is one. The attributes have the same facts for programs.
    """

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        for name, value in facts.items():
            setattr(self, name, value)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, {**self.__dict__})


def _rebuild(cls: type[PackerError], message: str, facts: dict[str, object]) -> PackerError:
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    error.__dict__.update(facts)
    return error


class BlobFormatError(PackerError, ValueError):
    """The bytes of a blob break its format.

    Attributes
    ----------
    path : str or None
        The library that contains the blob; None for bytes in memory.
    offset : int or None
        The position of the error, in bytes from the start of the blob (after its nbytes header).
    """

    path: str | None
    offset: int | None

    def __init__(self, message: str, *, path: str | None = None, offset: int | None = None) -> None:
        super().__init__(message, path=path, offset=offset)


class BytecodeError(BlobFormatError):
    """Bytecode of a virtual machine is malformed.

    Attributes
    ----------
    table : str
        ``"functions"``, ``"offsets"`` or ``"words"``.
    index : int
        The row of that table.
    """

    table: str
    index: int

    def __init__(self, message: str, *, table: str, index: int) -> None:
        super().__init__(message)
        self.table = table
        self.index = index


class LibraryLoadError(PackerError, OSError):
    """A file cannot be loaded as a library on this machine.

    Attributes
    ----------
    path : str or None
        The file.
    reason : str
        One stable word for programs: ``"io"``, ``"not-a-file"``, ``"not-elf"``,
        ``"truncated"``, ``"machine"``, ``"format"``, ``"malformed"``, ``"policy"``,
        ``"cpu"``, ``"blob"``, ``"dlopen"``, ``"busy"``, ``"fetch"``.
    """

    path: str | None
    reason: str

    def __init__(self, message: str, *, path: str | None = None, reason: str = "io") -> None:
        super().__init__(message, path=path, reason=reason)


class VerifyError(PackerError, ValueError):
    """A file has no signature that the caller trusts, or is not the file that was signed.

    Attributes
    ----------
    path : str or None
        The file, the bundle or the key with the error.
    reason : str
        One stable word for programs: ``"unsigned"``, ``"bundle"``, ``"oversized"``,
        ``"algorithm"``, ``"key"``, ``"signer"``, ``"signature"``, ``"statement"``, ``"name"``,
        ``"size"``, ``"digest"``, ``"version"``, ``"io"``, ``"package"``,
        ``"policy"``, ``"needed"``; with certificates also ``"identity"``, ``"issuer"``,
        ``"expired"``, ``"certificate"``, ``"time"``, ``"log"``, ``"entry"``, ``"root"``.
    """

    path: str | None
    reason: str

    def __init__(self, message: str, *, path: str | None = None, reason: str) -> None:
        super().__init__(message, path=path, reason=reason)


class EncryptionError(PackerError, ValueError):
    """A key for encryption cannot be used, or an entry cannot be decrypted with it.

    Attributes
    ----------
    path : str or None
        The file with the error: the library, or the key.
    reason : str
        One stable word for programs: ``"no-key"``, ``"key"``, ``"wrong-key"``, ``"changed"``,
        ``"cut"``, ``"moved"``, ``"mixed"``, ``"algorithm"``, ``"token"``, ``"package"``.
    key_id : str or None
        The id of the key that the entry needs, in hexadecimal digits.
    """

    path: str | None
    reason: str
    key_id: str | None

    def __init__(
        self, message: str, *, reason: str, path: str | None = None, key_id: str | None = None
    ) -> None:
        super().__init__(message, reason=reason, path=path, key_id=key_id)


class DeviceError(PackerError, RuntimeError):
    """A device or its driver cannot do the requested operation.

    Attributes
    ----------
    device : str or None
        The device, as ``"cuda:0"``.
    code : int or None
        The driver's own error code.
    """

    device: str | None
    code: int | None

    def __init__(self, message: str, *, device: str | None = None, code: int | None = None) -> None:
        super().__init__(message, device=device, code=code)

    @classmethod
    def from_text(cls, text: str) -> DeviceError:
        """Parse the core's ``<device>: <what> (code <code>)``; device and code are optional."""
        kind, _, rest = text.partition(":")
        index = rest.partition(":")[0]
        device = f"{kind}:{index}" if index.lstrip("-").isdecimal() else None
        code = text.rpartition("(code ")[2].removesuffix(")") if text.endswith(")") else ""
        return cls(text, device=device, code=int(code) if code.lstrip("-").isdecimal() else None)


class OutOfMemoryError(PackerError, MemoryError):
    """Memory cannot be allocated.

    Python raises a plain MemoryError if it cannot allocate an object.
    """


class FunctionNotFoundError(PackerError, AttributeError):
    """No module of the tree has a function of this name.

    Attributes
    ----------
    name : str
        The name that was looked up.
    module : str
        The type key of the module that was searched.
    """

    module: str

    def __init__(self, message: str, *, name: str, module: str) -> None:
        super().__init__(message, module=module)
        self.name = name


class _NameNotFoundError(PackerError, KeyError):
    name: str

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message, name=name)

    def __str__(self) -> str:
        return self.message  # a KeyError would show its repr


class WeightNotFoundError(_NameNotFoundError):
    """No module of the tree has a weight of this name, or the weight has no values any more.

    Attributes
    ----------
    name : str
        The name that was looked up.
    """


class ConstantNotFoundError(_NameNotFoundError, AttributeError):  # type: ignore[misc]
    """No module of the tree has a constant or variable of this name.

    Attributes
    ----------
    name : str
        The name that was looked up.
    """


class ModelNotFoundError(_NameNotFoundError):
    """A pool has no model of this name, or its file is missing.

    Attributes
    ----------
    name : str
        The name that was looked up.
    """


class LoaderNotFoundError(PackerError, LookupError):
    """No loader is registered for a type key.

    Attributes
    ----------
    type_key : str
        The key found in the blob.
    known : tuple of str
        The keys with a loader.
    """

    type_key: str
    known: tuple[str, ...]
    path: str | None

    def __init__(
        self, message: str, *, type_key: str, known: tuple[str, ...] = (), path: str | None = None
    ) -> None:
        super().__init__(message, type_key=type_key, known=known, path=path)


class ExportError(PackerError, ValueError):
    """A tree cannot be exported with these options, or its output cannot be written.

    Attributes
    ----------
    module : str or None
        The type key of the module that causes the error.
    path : str or None
        The output or input that causes the error.
    """

    module: str | None
    path: str | None

    def __init__(self, message: str, *, module: str | None = None, path: str | None = None) -> None:
        super().__init__(message, module=module, path=path)


class ToolchainError(PackerError, RuntimeError):
    """A compiler or linker is missing, failed, or did not write the expected output.

    Attributes
    ----------
    command : tuple of str
        The command that was run; empty when none was found.
    returncode : int or None
        Its exit status; negative: the number of the signal that ended it.
    stderr : str
        Its error output; a long one is cut.
    """

    command: tuple[str, ...]
    returncode: int | None
    stderr: str

    def __init__(
        self,
        message: str,
        *,
        command: tuple[str, ...] = (),
        returncode: int | None = None,
        stderr: str = "",
    ) -> None:
        super().__init__(message, command=command, returncode=returncode, stderr=stderr)


def from_text(class_name: str, text: str) -> PackerError | None:
    """Make the exception of native code, which raises a class name and a text.

    None for a class that needs more than a message.
    """
    if class_name == "DeviceError":
        return DeviceError.from_text(text)
    if class_name == "FunctionNotFoundError":  # of which the text quotes the name first
        return FunctionNotFoundError(text, name=text.partition("'")[2].partition("'")[0], module="")
    for known in (BlobFormatError, OutOfMemoryError, PackerError):
        if class_name == known.__name__:
            return known(text)
    return None


def shown(value: object) -> str:
    """The repr of a value for a message; a long one is cut."""
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def listed(names: Sequence[str]) -> str:
    """The first eight names, for a message."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(map(shown, names[:8])) + more


def near_names(name: str, names: list[str], also: Sequence[str] = ()) -> str:
    """The end of a not-found message: similar names, of `also` too, or some of `names`."""
    if not names and not also:
        return ""
    from difflib import get_close_matches

    close = get_close_matches(name, [*names, *also], n=3)
    close = close or [other for other in names if other.casefold() == name.casefold()]
    known = close or sorted(set(names))
    if not known:
        return ""
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    names_shown = ", ".join(map(repr, known[:_MOST_NAMES]))
    return ("; near names: " if close else "; it has: ") + names_shown + more
