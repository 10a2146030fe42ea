"""Module types that programs rarely name; a line's form is that of `runtime.public_names`."""

from .encrypted import EncryptedModule as EncryptedModule
from .metadata import MetadataModule as MetadataModule
from .opaque import OpaqueModule as OpaqueModule
from .shared_library import CarriedSharedLibraryModule as CarriedSharedLibraryModule
from .source import CarriedSourceModule as CarriedSourceModule
from .source import CarriedStaticLibraryModule as CarriedStaticLibraryModule
