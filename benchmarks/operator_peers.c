/* Operators of one library, on one thread: prints the name of each shape and the microseconds of a
 * call, the least of many. For benchmarks/operator_peers.py, which defines OURS, OPENBLAS,
 * ONEDNN or XNNPACK. Weights are prepared first; images have the library's best layout. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void call(void *state);
struct work {
  call *call; /* NULL: the library has no such operator */
  void *state;
};

static float *floats(int64_t count) {
  float *made = aligned_alloc(64, (size_t)(count * 4 + 127) / 64 * 64);
  for (int64_t i = 0; i < count; i++) made[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  return made;
}

#if defined(OURS)
#include "dso_operators.h"

static void run_product(void *state) { dso_op_matmul(state); }

static struct work product(int64_t rows, int64_t inner, int64_t columns) {
  struct dso_op_matmul *p = calloc(1, sizeof *p);
  *p = (struct dso_op_matmul){.rows = rows,
                              .inner = inner,
                              .columns = columns,
                              .a = floats(rows * inner),
                              .a_row = inner,
                              .a_column = 1,
                              .b_is_packed = 1,
                              .out = floats(rows * columns),
                              .out_row = columns};
  float *packed = floats(dso_op_matmul_packed_size(p));
  dso_op_matmul_pack(p, floats(inner * columns), columns, 1, packed);
  p->b = packed;
  p->workspace = floats(dso_op_matmul_workspace(p));
  return (struct work){run_product, p};
}

static struct dso_op_image image(int64_t channels, int64_t side, int64_t padding) {
  const int64_t row = (side + 2 * padding) * 16, plane = (side + 2 * padding) * row;
  const int64_t blocks = (channels + 15) / 16;
  float *first = floats(blocks * plane); /* what the padding has does not change the time */
  return (struct dso_op_image){.data = first + padding * (row + 16),
                                 .channels = channels,
                                 .height = side,
                                 .width = side,
                                 .block = 16,
                                 .padding = padding,
                                 .plane = plane,
                                 .row = row};
}

static void run_convolution(void *state) { dso_op_conv2d(state); }

static struct work convolution(int64_t channels, int64_t outputs, int64_t side, int64_t window,
                               int64_t groups) {
  struct dso_op_conv2d *c = calloc(1, sizeof *c);
  *c = (struct dso_op_conv2d){.batch = 1,
                              .in = image(channels, side, window / 2),
                              .out = image(outputs, side, 0),
                              .groups = groups,
                              .kernel = {window, window},
                              .stride = {1, 1},
                              .dilation = {1, 1},
                              .pad = {window / 2, window / 2}};
  float *packed = floats(dso_op_conv2d_packed_size(c));
  dso_op_conv2d_pack(c, floats(outputs * channels / groups * window * window), packed);
  c->weight = packed;
  c->workspace = floats(dso_op_conv2d_workspace(c));
  return (struct work){run_convolution, c};
}

#elif defined(OPENBLAS)
#include <cblas.h>

struct product {
  int rows, inner, columns;
  float *a, *b, *out;
};

static void run_product(void *state) {
  const struct product *p = state;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->rows, p->columns, p->inner, 1, p->a,
              p->inner, p->b, p->columns, 0, p->out, p->columns);
}

static struct work product(int64_t rows, int64_t inner, int64_t columns) {
  struct product *p = malloc(sizeof *p);
  *p = (struct product){(int)rows,
                        (int)inner,
                        (int)columns,
                        floats(rows * inner),
                        floats(inner * columns),
                        floats(rows * columns)};
  return (struct work){run_product, p};
}

/* Of one pixel, a product: weights times planes. */
static struct work convolution(int64_t channels, int64_t outputs, int64_t side, int64_t window,
                               int64_t groups) {
  if (window > 1 || groups > 1) return (struct work){NULL, NULL};
  return product(outputs, channels, side * side);
}

#elif defined(ONEDNN)
#include <dnnl.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;
struct primitive {
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arguments[3];
};

static void run(void *state) {
  const struct primitive *p = state;
  dnnl_primitive_execute(p->primitive, stream, 3, p->arguments);
  dnnl_stream_wait(stream);
}

/* A tensor in any layout that the library chooses, or without a choice in the usual one. */
static dnnl_memory_desc_t tensor(int count, const dnnl_dims_t extents, int is_chosen) {
  dnnl_memory_desc_t made;
  const dnnl_format_tag_t usual = dnnl_ab;
  dnnl_memory_desc_create_with_tag(&made, count, extents, dnnl_f32,
                                   is_chosen ? dnnl_format_tag_any : usual);
  return made;
}

static struct work work_of(dnnl_primitive_desc_t description) {
  static const struct {
    dnnl_query_t query;
    int argument;
  } tensors[3] = {{dnnl_query_src_md, DNNL_ARG_SRC},
                  {dnnl_query_weights_md, DNNL_ARG_WEIGHTS},
                  {dnnl_query_dst_md, DNNL_ARG_DST}};
  struct primitive *p = malloc(sizeof *p);
  for (int i = 0; i < 3; i++) {
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(description, tensors[i].query, 0);
    p->arguments[i].arg = tensors[i].argument;
    dnnl_memory_create(&p->arguments[i].memory, md, engine,
                       floats((int64_t)dnnl_memory_desc_get_size(md) / 4));
  }
  dnnl_primitive_create(&p->primitive, description);
  return (struct work){run, p};
}

static struct work product(int64_t rows, int64_t inner, int64_t columns) {
  dnnl_primitive_desc_t description;
  dnnl_engine_create(&engine, dnnl_cpu, 0);
  dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
  if (dnnl_matmul_primitive_desc_create(
          &description, engine, tensor(2, (dnnl_dims_t){rows, inner}, 0),
          tensor(2, (dnnl_dims_t){inner, columns}, 1), NULL,
          tensor(2, (dnnl_dims_t){rows, columns}, 0), NULL) != dnnl_success)
    return (struct work){NULL, NULL};
  return work_of(description);
}

static struct work convolution(int64_t channels, int64_t outputs, int64_t side, int64_t window,
                               int64_t groups) {
  dnnl_primitive_desc_t description;
  const int64_t pad = window / 2, rest = channels / groups;
  const dnnl_dims_t plain = {outputs, rest, window, window};
  const dnnl_dims_t grouped = {groups, outputs / groups, rest, window, window};
  if (dnnl_convolution_forward_primitive_desc_create(
          &description, engine, dnnl_forward_inference, dnnl_convolution_direct,
          tensor(4, (dnnl_dims_t){1, channels, side, side}, 1),
          groups > 1 ? tensor(5, grouped, 1) : tensor(4, plain, 1), NULL,
          tensor(4, (dnnl_dims_t){1, outputs, side, side}, 1), (dnnl_dims_t){1, 1},
          (dnnl_dims_t){0, 0}, (dnnl_dims_t){pad, pad}, (dnnl_dims_t){pad, pad},
          NULL) != dnnl_success)
    return (struct work){NULL, NULL};
  return work_of(description);
}

#elif defined(XNNPACK)
#include <xnnpack.h>

static void run(void *state) { xnn_run_operator(state, NULL); }

static struct work product(int64_t rows, int64_t inner, int64_t columns) {
  xnn_operator_t made = NULL;
  xnn_initialize(NULL);
  xnn_create_fully_connected_nc_f32((size_t)inner, (size_t)columns, (size_t)inner, (size_t)columns,
                                    floats(inner * columns), NULL, -INFINITY, INFINITY, 0, &made);
  xnn_setup_fully_connected_nc_f32(made, (size_t)rows, floats(rows * inner), floats(rows * columns),
                                   NULL);
  return (struct work){run, made};
}

static struct work convolution(int64_t channels, int64_t outputs, int64_t side, int64_t window,
                               int64_t groups) {
  xnn_operator_t made = NULL;
  const uint32_t pad = (uint32_t)window / 2, extent = (uint32_t)window;
  const size_t size = (size_t)side;
  xnn_create_convolution2d_nhwc_f32(
      pad, pad, pad, pad, extent, extent, 1, 1, 1, 1, (uint32_t)groups, (size_t)(channels / groups),
      (size_t)(outputs / groups), (size_t)channels, (size_t)outputs,
      floats(outputs * channels / groups * window * window), NULL, -INFINITY, INFINITY, 0, &made);
  xnn_setup_convolution2d_nhwc_f32(made, 1, size, size, floats(channels * side * side),
                                   floats(outputs * side * side), NULL);
  return (struct work){run, made};
}
#endif

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void measure(const char *name, struct work work) {
  double least = INFINITY;
  if (work.call == NULL) return;
  for (int round = 0; round < 4; round++) {
    int calls = 0;
    const double start = now();
    do work.call(work.state), calls++;
    while (now() - start < 5e-4);
    least = fmin(least, (now() - start) / calls);
  }
  printf("%s\t%.2f\n", name, least * 1e6);
}

int main(void) {
  static const int64_t products[][3] = {
      {128, 256, 1024}, {128, 512, 512}, {128, 2048, 512}, {1, 2048, 1000}};
  static const int64_t convolutions[][5] = {
      {64, 64, 56, 3, 1},  {256, 256, 14, 3, 1},   {64, 256, 56, 1, 1},   {256, 1024, 14, 1, 1},
      {96, 576, 14, 1, 1}, {144, 144, 56, 3, 144}, {576, 576, 14, 3, 576}};
  char name[99];
  for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
    const int64_t *p = products[i];
    snprintf(name, sizeof name, "product %d x %d x %d", (int)p[0], (int)p[1], (int)p[2]);
    measure(name, product(p[0], p[1], p[2]));
  }
  for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++) {
    const int64_t *c = convolutions[i];
    snprintf(name, sizeof name, "convolution %d x %d%s, %d to %d, %d x %d", (int)c[3], (int)c[3],
             c[4] > 1 ? " depthwise" : "", (int)c[0], (int)c[1], (int)c[2], (int)c[2]);
    measure(name, convolution(c[0], c[1], c[2], c[3], c[4]));
  }
  return 0;
}
