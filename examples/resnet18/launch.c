/* Host code of the OpenCL kernels: the operators that the graph calls, each a launch or two.
 *
 * They are written as safe calls, so that what a launch raises is passed on. The shapes of the
 * arguments say how large a launch is. */
#include "dso_packer.h"

enum { CHANNELS = 16, COLUMNS = 7, FRAME = 1, PICTURE_FRAME = 3 };

#define OPERATOR(name)                                                                     \
  DSO_EXPORT int __tvm_ffi_##name(void *self, const dso_any *args, int32_t num_args,       \
                                  dso_any *result);                                        \
  int __tvm_ffi_##name(void *self, const dso_any *args, int32_t num_args, dso_any *result)

/* A tensor comes as its DLTensor, or as an object that has one behind its header. */
static const int64_t *shape_of(const dso_any *tensor) {
  const char *place = tensor->v_ptr;
  if (tensor->type_index == DSO_TENSOR) place += sizeof(dso_object);
  return ((const DLTensor *)place)->shape;
}

static int launch_conv(const dso_any *data, const dso_any *weight, const dso_any *bias,
                       dso_any residual, const dso_any *out, int relu) {
  const int64_t *from = shape_of(data), *to = shape_of(out), window = shape_of(weight)[2];
  const int64_t frame = from[3] == 1 ? PICTURE_FRAME : FRAME;
  const int64_t row = from[2] * from[3], height = to[1] - 2 * FRAME, width = to[2] - 2 * FRAME;
  const int64_t stride = (from[1] - 2 * frame) / height;
  const int64_t first = (frame - window / 2) * (row + from[3]);
  if (dso_call("conv_cl", NULL, *data, *weight, *bias, residual, *out, dso_int(from[0]),
               dso_int(from[3]), dso_int(window), dso_int(stride), dso_int(row),
               dso_int(from[1] * row), dso_int(first), dso_int(relu), dso_int(to[0]),
               dso_int(width / COLUMNS), dso_int(height)))
    return -1;
  return dso_call("clear_frame_cl", NULL, *out, dso_int(to[2]), dso_int(to[1]), dso_int(to[0]));
}

OPERATOR(conv) { return launch_conv(args, args + 1, args + 2, dso_none(), args + 3, 0); }
OPERATOR(conv_relu) { return launch_conv(args, args + 1, args + 2, dso_none(), args + 3, 1); }
OPERATOR(conv_add_relu) { return launch_conv(args, args + 1, args + 2, args[3], args + 4, 1); }

OPERATOR(frame_picture) {
  const int64_t *to = shape_of(args + 1);
  return dso_call("frame_picture_cl", NULL, args[0], args[1], dso_int(to[2]), dso_int(to[1]),
                  dso_int(to[0]));
}

OPERATOR(max_pool) {
  const int64_t *from = shape_of(args), *to = shape_of(args + 1);
  return dso_call("max_pool_cl", NULL, args[0], args[1], dso_int(from[2]), dso_int(from[1]),
                  dso_int(to[2]), dso_int(to[1]), dso_int(to[0]));
}

OPERATOR(average_pool) {
  const int64_t *from = shape_of(args);
  const int64_t inner = (from[1] - 2 * FRAME) * (from[2] - 2 * FRAME);
  return dso_call("average_pool_cl", NULL, args[0], args[1], dso_int(from[1] * from[2]),
                  dso_int(inner), dso_int(from[0]));
}

OPERATOR(dense) {
  const int64_t *weight = shape_of(args + 1);
  return dso_call("dense_cl", NULL, args[0], args[1], args[2], args[3], dso_int(weight[0]),
                  dso_int(weight[1]));
}
