"""PKCS #11 tokens (a smart card, an HSM, SoftHSM): a session, by the RFC 7512 URI of a key.

    pkcs11:token=release;object=acme?module-path=/usr/lib/softhsm/libsofthsm2.so

A PIN in the URI is refused: other users see the arguments of a command.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes

from ..error import PackerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # Makes an error of a text and of its kind: "key" or "package".
    Refusal = Callable[[str, str], PackerError]

SCHEME = "pkcs11:"
_PATH, _QUERY = ("token", "object", "id", "type"), ("module-path",)
_MODULE_VARIABLE = "DSO_PKCS11_MODULE"


class TokenSession(NamedTuple):
    """An open session."""

    session: Any  # that of `pkcs11`
    named: dict[str, Any]  # the attributes of the key that the URI names
    has_pin: bool  # most tokens show keys only with a PIN


def open_token(uri: str, pin_of: Callable[[str], bytes | None], refusal: Refusal) -> TokenSession:
    """Open the token of a URI; `pin_of` gets the URI without its query.

    Raises what `refusal` makes: for a malformed URI, no such token, a wrong PIN, or a missing
    package `python-pkcs11`.
    """
    fields = _parse(uri, refusal)
    try:
        import pkcs11
    except ImportError as error:
        text = f"{uri}: keys on tokens need the package python-pkcs11: pip install python-pkcs11"
        raise refusal(text, "package") from error
    module = fields.get("module-path") or os.fsencode(os.environ.get(_MODULE_VARIABLE, ""))
    if not module:
        text = f"{uri}: no module-path; add ?module-path=..., or set {_MODULE_VARIABLE}"
        raise refusal(text, "key")
    pin = pin_of(uri.partition("?")[0])
    with explained(uri, refusal):
        token = pkcs11.lib(os.fsdecode(module)).get_token(token_label=_text(fields, "token"))
        session = token.open(user_pin=pin.decode() if pin else None)
    named = {"label": _text(fields, "object"), "id": fields.get("id")}
    return TokenSession(session, named, bool(pin))


@contextmanager
def explained(uri: str, refusal: Refusal, *, key: str = "key", hint: str = "") -> Iterator[None]:
    """Say what an error of a token means; `key` is what the URI names."""
    import pkcs11

    try:
        yield
    except PackerError:
        raise
    except (pkcs11.PKCS11Error, RuntimeError, ValueError) as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        if isinstance(error, pkcs11.PinIncorrect):
            text = "the PIN is wrong"
        elif isinstance(error, pkcs11.NoSuchToken):
            text = "the module has no such token; `softhsm2-util --show-slots` lists SoftHSM's"
        elif isinstance(error, pkcs11.NoSuchKey):
            text = f"the token has no {key} of this name{hint}"
        raise refusal(f"{uri}: {text}", "key") from error


def pin_hint(opened: TokenSession) -> str:
    """Return what to do if a token shows no key."""
    return "" if opened.has_pin else "; most tokens show keys only after a PIN: set DSO_PKCS11_PIN"


def _parse(uri: str, refusal: Refusal) -> dict[str, bytes]:
    """Return the attributes of a URI."""
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    fields: dict[str, bytes] = {}
    for part, separator, known in ((path, ";", _PATH), (query, "&", _QUERY)):
        for item in filter(None, part.split(separator)):
            name, equals, value = item.partition("=")
            if name == "pin-value":
                text = "pin-value in the URI: others see it; set DSO_PKCS11_PIN instead"
                raise refusal(f"{SCHEME}: {text}", "key")
            if name not in known or not equals or name in fields:
                text = f"{uri}: attribute {item!r}, expected each of {', '.join(known)} once"
                raise refusal(text, "key")
            fields[name] = unquote_to_bytes(value)
    if not ("object" in fields or "id" in fields) or "token" not in fields:
        raise refusal(f"{uri}: expected the token and the object or id of the key", "key")
    return fields


def _text(fields: dict[str, bytes], name: str) -> str | None:
    return fields[name].decode() if name in fields else None
