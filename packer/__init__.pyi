"""The public names of packer, one line each; a line's form is that of `runtime.public_names`."""

import sys

from runtime import __version__ as __version__
from runtime.error import BlobFormatError as BlobFormatError
from runtime.error import EncryptionError as EncryptionError
from runtime.error import ExportError as ExportError
from runtime.error import LibraryLoadError as LibraryLoadError
from runtime.error import LoaderNotFoundError as LoaderNotFoundError
from runtime.error import OutOfMemoryError as OutOfMemoryError
from runtime.error import PackerError as PackerError
from runtime.error import ToolchainError as ToolchainError
from runtime.error import VerifyError as VerifyError

from .declare.declaration import FunctionDeclaration as FunctionDeclaration
from .deferred_link import link_library as link_library
from .export import export_library as export_library
from .fatbin import create_fatbin as create_fatbin
from .importers import Importer as Importer
from .importers import Setting as Setting
from .importers.header import HeaderModule as HeaderModule
from .importers.header import from_header as from_header
from .imports import pack_imports_to_c as pack_imports_to_c
from .imports import pack_imports_to_llvm as pack_imports_to_llvm
from .inspect import inspect_library as inspect_library
from .inspect.check import check_library as check_library
from .inspect.diff import Difference as Difference
from .inspect.diff import diff_libraries as diff_libraries
from .inspect.doctor import examine_machine as examine_machine
from .inspect.extract import extract_library as extract_library
from .inspect.findings import Finding as Finding
from .inspect.page import write_report as write_report
from .inspect.report import LibraryReport as LibraryReport
from .modules.c_source import CSourceModule as CSourceModule
from .modules.llvm import LLVMModule as LLVMModule
from .modules.static_library import StaticLibraryModule as StaticLibraryModule
from .output import Build as Build
from .output import Output as Output
from .packaging.stubs import stub_of as stub_of
from .packaging.wheel import write_wheel as write_wheel
from .project import Project as Project
from .project import read_project as read_project
from .toolchain.create import create_object as create_object
from .toolchain.create import create_shared as create_shared
from .toolchain.cross_linker import cross_compiler as cross_compiler
from .toolchain.formats import create_archive as create_archive
from .toolchain.formats import tar as tar
from .trust.encrypt import encrypting as encrypting
from .trust.encrypt.keys import create_encryption_key as create_encryption_key
from .trust.sign import library_statement as library_statement
from .trust.sign import sign_library as sign_library
from .trust.sign import store_bundle as store_bundle
from .trust.sign.keys import create_keys as create_keys

# Of other distributions, for type checkers.
if sys.version_info:
    from dso_packer_numba import NumbaModule as NumbaModule
    from dso_packer_numba import from_numba as from_numba
    from dso_packer_onnx import from_onnx as from_onnx
    from dso_packer_onnx.torch import from_torch as from_torch
