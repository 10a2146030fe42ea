/* Host code that launches the kernel of an imported module several times. */
#include "dso_packer.h"

DSO_EXPORT int __tvm_ffi_host(void *self, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)self, (void)num_args, (void)result;
  for (int64_t i = 0; i < args[0].v_int64; i++)
    if (dso_call("scale", NULL, args[1], args[2], args[3], dso_int(1), dso_int(64))) return -1;
  return 0;
}
