#include "device.h"

#include "device_api.h"

PyObject *device_pair(DLDevice device) {
  int type = device.device_type;
  const char *name = device_kind_name(type);
  if (name != NULL) return Py_BuildValue("(si)", name, device.device_id);
  return Py_BuildValue("(Ni)", PyUnicode_FromFormat("device[%d]", type), device.device_id);
}
