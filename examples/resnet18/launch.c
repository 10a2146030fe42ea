/* Host code of the OpenCL kernels: the operators that the graph calls, each one or two launches.
 *
 * The shapes of the arguments give the extents of a launch: the last integers are its groups. */
#include "dso_packer.h"

enum { COLUMNS = 7, FRAME = 1, PICTURE_FRAME = 3 };

static dso_status launch_conv(DLTensor *data, DLTensor *weight, DLTensor *bias, dso_any residual,
                              DLTensor *out, int relu) {
  const int64_t *from = data->shape, *to = out->shape, window = weight->shape[2];
  const int64_t frame = from[3] == 1 ? PICTURE_FRAME : FRAME;
  const int64_t row = from[2] * from[3], height = to[1] - 2 * FRAME, width = to[2] - 2 * FRAME;
  const int64_t stride = (from[1] - 2 * frame) / height;
  const int64_t first = (frame - window / 2) * (row + from[3]);
  if (dso_call("conv_cl", NULL, dso_tensor(data), dso_tensor(weight), dso_tensor(bias), residual,
               dso_tensor(out), dso_int(from[0]), dso_int(from[3]), dso_int(window),
               dso_int(stride), dso_int(row), dso_int(from[1] * row), dso_int(first),
               dso_int(relu), dso_int(to[0]), dso_int(width / COLUMNS), dso_int(height)))
    return -1;
  return dso_call("clear_frame_cl", NULL, dso_tensor(out), dso_int(to[2]), dso_int(to[1]),
                  dso_int(to[0]));
}

dso_status conv(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *out) {
  return launch_conv(data, weight, bias, dso_none(), out, 0);
}

dso_status conv_relu(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *out) {
  return launch_conv(data, weight, bias, dso_none(), out, 1);
}

dso_status conv_add_relu(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *residual,
                         DLTensor *out) {
  return launch_conv(data, weight, bias, dso_tensor(residual), out, 1);
}

dso_status frame_picture(DLTensor *picture, DLTensor *framed) {
  const int64_t *to = framed->shape;
  return dso_call("frame_picture_cl", NULL, dso_tensor(picture), dso_tensor(framed),
                  dso_int(to[2]), dso_int(to[1]), dso_int(to[0]));
}

dso_status max_pool(DLTensor *data, DLTensor *out) {
  const int64_t *from = data->shape, *to = out->shape;
  return dso_call("max_pool_cl", NULL, dso_tensor(data), dso_tensor(out), dso_int(from[2]),
                  dso_int(from[1]), dso_int(to[2]), dso_int(to[1]), dso_int(to[0]));
}

dso_status average_pool(DLTensor *data, DLTensor *out) {
  const int64_t *from = data->shape;
  const int64_t inner = (from[1] - 2 * FRAME) * (from[2] - 2 * FRAME);
  return dso_call("average_pool_cl", NULL, dso_tensor(data), dso_tensor(out),
                  dso_int(from[1] * from[2]), dso_int(inner), dso_int(from[0]));
}

dso_status dense(DLTensor *data, DLTensor *weight, DLTensor *bias, DLTensor *out) {
  return dso_call("dense_cl", NULL, dso_tensor(data), dso_tensor(weight), dso_tensor(bias),
                  dso_tensor(out), dso_int(weight->shape[0]), dso_int(weight->shape[1]));
}
