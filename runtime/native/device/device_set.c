/* The function `__tvm_set_device`. */
#include "device/device_set.h"

#include <limits.h>

#include "device/current_device.h"
#include "device/device_api.h"
#include "abi/raised.h"

int device_set(DLDevice device) {
  const struct device_api *api = device_api(device.device_type);
  if (api == NULL || api->check(device.device_id) != 0) return -1;
  set_current_device(device);
  return 0;
}

static int is_int32(const dso_any *value) {
  return value->type_index == DSO_INT && value->v_int64 >= INT_MIN && value->v_int64 <= INT_MAX;
}

static int call(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle, (void)result; /* the result stays None */
  if (num_args == 2 && is_int32(&args[0]) && is_int32(&args[1]))
    return device_set(
        (DLDevice){.device_type = (int32_t)args[0].v_int64, .device_id = (int32_t)args[1].v_int64});
  return raised_format("TypeError",
                       "__tvm_set_device: expected two ints, device_type and device_id");
}

/* Static: its one strong reference is never dropped. */
dso_function_object device_set_function = {
    .object = {.combined_ref_count = ((uint64_t)1 << 32) + 1, .type_index = DSO_FUNCTION},
    .safe_call = call,
};
