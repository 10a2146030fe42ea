"""The path that pickles of 0.1.0 name: they import `rebuild_module` from here."""

from .serial.interchange import rebuild_module

__all__ = ["rebuild_module"]
