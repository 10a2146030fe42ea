"""`runtime.relax.vm` under the name that TVM's programs use."""

import sys

from .relax import vm
from .relax.vm import VirtualMachine as VirtualMachine

sys.modules[__name__] = vm
