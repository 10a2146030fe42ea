"""The public names of runtime, one line each; a line's form is that of `runtime.public_names`."""

from . import blob as blob
from . import modules as modules
from ._core import Device as Device
from ._core import Handle as Handle
from .data_file import UnloadedLibraryModule as UnloadedLibraryModule
from .data_file import open_data as open_data
from .error import BlobFormatError as BlobFormatError
from .error import DeviceError as DeviceError
from .error import ExportError as ExportError
from .error import FunctionNotFoundError as FunctionNotFoundError
from .error import LibraryLoadError as LibraryLoadError
from .error import LoaderNotFoundError as LoaderNotFoundError
from .error import ModelNotFoundError as ModelNotFoundError
from .error import OutOfMemoryError as OutOfMemoryError
from .error import PackerError as PackerError
from .error import ToolchainError as ToolchainError
from .error import VerifyError as VerifyError
from .error import WeightNotFoundError as WeightNotFoundError
from .graph import executor as graph_executor  # noqa: F401
from .graph.executor import GraphExecutor as GraphExecutor
from .interchange import export_module_to_base64 as export_module_to_base64
from .interchange import import_module_from_base64 as import_module_from_base64
from .interchange import load_json as load_json
from .interchange import save_json as save_json
from .library import LibraryModule as LibraryModule
from .load import load as load
from .load import load_from_bytes as load_from_bytes
from .model_record import TensorInfo as TensorInfo
from .module import Module as Module
from .modules.const_loader import ConstLoaderModule as ConstLoaderModule
from .modules.device import DeviceModule as DeviceModule
from .modules.device import FunctionInfo as FunctionInfo
from .modules.device import Shader as Shader
from .modules.graph_executor import AotExecutorFactory as AotExecutorFactory
from .modules.graph_executor import GraphExecutorFactory as GraphExecutorFactory
from .modules.json_runtime import JSONRuntimeModule as JSONRuntimeModule
from .modules.safetensors import SafetensorsModule as SafetensorsModule
from .pool import Pool as Pool
from .pool import PoolStatistics as PoolStatistics
from .property import ModuleProperty as ModuleProperty
from .reader import Reader as Reader
from .registry import get_global_func as get_global_func
from .registry import list_global_func_names as list_global_func_names
from .registry import register_func as register_func
from .registry import register_loader as register_loader
from .relax import vm as relax_vm  # noqa: F401
from .serial.serializer import deserialize_module_from_bytes as deserialize_module_from_bytes
from .serial.serializer import serialize_module_to_bytes as serialize_module_to_bytes
from .stream import Writer as Writer
from .system_library import system_lib as system_lib
from .tensors.params import load_param_dict as load_param_dict
from .tensors.params import load_param_dict_from_file as load_param_dict_from_file
from .tensors.params import save_param_dict as save_param_dict
from .tensors.params import save_param_dict_to_file as save_param_dict_to_file
from .tensors.tensor import Tensor as Tensor
from .tensors.tensor import cpu as cpu
from .tensors.tensor import empty as empty
from .tensors.tensor import from_dlpack as from_dlpack
from .tensors.tensor import tensor as tensor
from .trust import verify_file as verify_file
from .trust.policy import set_trust_policy as set_trust_policy
from .trust.rule import Trust as Trust

__version__: str
