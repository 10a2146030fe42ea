#include "device.h"

/* DLDeviceType (dlpack.h), by number. */
static const char *const names[] = {
    NULL,    "cpu", "cuda",   "cuda_host", "opencl",       NULL,     NULL,     "vulkan", "metal",
    "vpi",   "rocm", "rocm_host", "ext_dev", "cuda_managed", "oneapi", "webgpu", "hexagon", "maia",
};

PyObject *device_pair(DLDevice device) {
  int type = device.device_type, count = (int)(sizeof names / sizeof *names);
  const char *name = type > 0 && type < count ? names[type] : NULL;
  if (name != NULL) return Py_BuildValue("(si)", name, device.device_id);
  return Py_BuildValue("(Ni)", PyUnicode_FromFormat("device[%d]", type), device.device_id);
}
