/* dso_operators.h: fast operators of neural networks for host code, in float32.
 *
 *     #include "dso_operators.h"
 *
 *     int dense(const float *x, const float *packed, const float *bias, float *y, float *workspace) {
 *       const struct dso_op_matmul product = {
 *           .rows = 128, .inner = 768, .columns = 3072,
 *           .a = x, .a_row = 768, .a_column = 1,
 *           .b = packed, .b_is_packed = 1,
 *           .out = y, .out_row = 3072,
 *           .after = {.bias = bias, .activation = DSO_OP_GELU},
 *           .workspace = workspace,
 *       };
 *       return dso_op_matmul(&product);
 *     }
 *
 * Each operator takes one struct of pointers, extents and distances. Distances are counted in floats
 * from one element to the next along a dimension. Fields that are not named are 0, which means: one
 * batch, no bias, no residual, no activation. An operator allocates nothing: `workspace` is memory
 * for as many floats as dso_op_NAME_workspace returns for the same struct; where that is 0, it may be
 * NULL. Pointers need the alignment of a float only; 64 bytes are faster. `out` does not overlap
 * the inputs, but `residual` may be `out` itself.
 *
 * Weights are stored packed, in the order in which the kernels read them. This layout is the same
 * for every processor. dso_op_NAME_pack writes it; packer.operators does so during an export.
 *
 * Threads: in a library that runtime.load or dso_load has opened, an operator runs on the loader's
 * threads. Elsewhere it runs in the calling thread. Each element is computed by the same operations
 * in the same order with any number of threads, so the result has the same bits.
 *
 * Operators return 0, or -1 if the loader could not run the threads; its error is raised then. They
 * do not check the struct. The functions are hidden: each library has its own. C11 and C++11, GCC
 * and Clang. docs/operators.md describes layouts and compiler options. */
#ifndef DSO_OPERATORS_H
#define DSO_OPERATORS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DSO_OP_API __attribute__((visibility("hidden")))

/* ---- After the sum: out = activation(sum + bias + residual) ---- */

enum dso_op_activation {
  DSO_OP_NONE,
  DSO_OP_RELU,
  DSO_OP_CLIP,     /* to low ... high */
  DSO_OP_GELU,     /* x / 2 * (1 + erf(x / sqrt(2))) */
  DSO_OP_GELU_TANH /* its approximation by tanh */
};

struct dso_op_after {
  const float *bias;     /* one per column or output channel, or NULL */
  const float *residual; /* with the extents and distances of `out`, or NULL */
  enum dso_op_activation activation;
  float low, high; /* of DSO_OP_CLIP */
};

/* ---- Elements ----
 *
 * Sums of float16 and bfloat16 are float32, sums of 8-bit integers exact in int32, modulo 2^32. */
enum dso_op_type {
  DSO_OP_FLOAT32,
  DSO_OP_INT32,
  DSO_OP_INT8,
  DSO_OP_UINT8,
  DSO_OP_BFLOAT16,
  DSO_OP_FLOAT16
};

/* ---- Matrix product: out[i][j] = sum over k of a[i][k] * b[k][j] ---- */

struct dso_op_matmul {
  int64_t batch[2]; /* how many products, in two dimensions; 0 is the same as 1 */
  int64_t rows, inner, columns;
  const float *a;
  int64_t a_batch[2], a_row, a_column; /* a distance of 0 uses the same data again */
  const void *b;                       /* float */
  int64_t b_batch[2], b_row, b_column; /* of a packed b only b_batch */
  int b_is_packed;                     /* in the layout of dso_op_matmul_pack */
  enum dso_op_type b_type;             /* of a packed b: float32, float16 or bfloat16 */
  float *out;
  int64_t out_batch[2], out_row; /* columns are adjacent */
  struct dso_op_after after;
  float *workspace;
};

DSO_OP_API int dso_op_matmul(const struct dso_op_matmul *product);
DSO_OP_API int64_t dso_op_matmul_workspace(const struct dso_op_matmul *product);

/* Packed: [columns / 32, rounded up][inner][32], with zeros for the columns that are missing. The
 * struct needs inner and columns only; *_packed_size is the count of floats. */
DSO_OP_API int64_t dso_op_matmul_packed_size(const struct dso_op_matmul *product);
DSO_OP_API void dso_op_matmul_pack(const struct dso_op_matmul *product, const float *b,
                                   int64_t b_row, int64_t b_column, float *packed);

/* ---- Product with a weight of 4 or 8 bits: b[k][j] = scale[k / block][j] * (an integer - zero) ----
 *
 * With activation_bits 8 each block of a becomes integers too, the nearest to a * 127 / greatest, and
 * each sum of integers is exact; then (sum * a's scale) * b's scale are added in float32, block after
 * block: the same bits on every processor. A block whose greatest is below 2^-100 counts as 0, one
 * with an infinity or a NaN makes NaN. */

struct dso_op_matmul_bits {
  int64_t rows, inner, columns;
  int bits;            /* 4 or 8 */
  int activation_bits; /* 8, or 0: float32 */
  int has_zeros;       /* the weight has a zero for each scale, else they are 0 */
  int64_t block;       /* inputs that share a scale: 16, 32, 64, 128 or 256 */
  const float *a;
  int64_t a_row;
  const void *b; /* packed: packer.operators.pack_matmul_bits; docs/operators.md */
  float *out;
  int64_t out_row;
  struct dso_op_after after;
  float *workspace;
};

DSO_OP_API int dso_op_matmul_bits(const struct dso_op_matmul_bits *product);
DSO_OP_API int64_t dso_op_matmul_bits_workspace(const struct dso_op_matmul_bits *product);

/* Write column `column` of the weight, as float32, to out[inner]: a row of a table of few bits. Of
 * the struct it needs inner, bits, has_zeros, block and b. */
DSO_OP_API void dso_op_matmul_bits_column(const struct dso_op_matmul_bits *product, int64_t column,
                                          float *out);

/* ---- Matrix product of doubles; fields as in struct dso_op_matmul, sizes in doubles ---- */

struct dso_op_double_matmul {
  int64_t batch[2];
  int64_t rows, inner, columns;
  const double *a;
  int64_t a_batch[2], a_row, a_column;
  const double *b;
  int64_t b_batch[2], b_row, b_column;
  double *out;
  int64_t out_batch[2], out_row;
};

DSO_OP_API int dso_op_double_matmul(const struct dso_op_double_matmul *product);

/* ---- Products of 8-bit integers and of bfloat16 ---- */

/* After the sum. A result of int32 is sum + bias. Results of float32 and bfloat16 are
 * after((sum + bias) * scale); the residual, of float32, only with float32. Results of 8 bits are
 * zero + that value, rounded to the nearest integer, ties to even, and limited to the type;
 * `after` has no bias and no residual then, and no GELU. */
struct dso_op_rescale {
  const int32_t *bias; /* of integers: one per column or output channel, or NULL */
  const float *scale;  /* NULL: 1 */
  int64_t scale_step;  /* 1: one per column or output channel; 0: one for all */
  const void *zero;    /* of a result of 8 bits, one of its elements; NULL: 0 */
  struct dso_op_after after;
};

/* out[i][j] = sum over k of (a[i][k] - a_zero) * (b[k][j] - b_zero). Both factors are integers of 8
 * bits, or both bfloat16. */
struct dso_op_lowp_matmul {
  int64_t batch[2]; /* as in struct dso_op_matmul; distances are in elements */
  int64_t rows, inner, columns;
  enum dso_op_type a_type, b_type, out_type;
  const void *a;
  int64_t a_batch[2], a_row, a_column;
  const void *b; /* packed: with its batch's distances in bytes */
  int64_t b_batch[2], b_row, b_column;
  int b_is_packed;
  void *out;
  int64_t out_batch[2], out_row;
  const void *a_zero, *b_zero; /* elements of the factors, or NULL: 0 */
  int64_t b_zero_step;         /* 1: one per column; 0: one for all */
  struct dso_op_rescale after;
  void *workspace; /* aligned to 64 */
};

DSO_OP_API int dso_op_lowp_matmul(const struct dso_op_lowp_matmul *product);
DSO_OP_API int64_t dso_op_lowp_matmul_workspace(const struct dso_op_lowp_matmul *product);

/* Packed: [columns / 32, rounded up][inner / 4, rounded up][32][4] of int8, with 128 less than each
 * element of uint8, and after each panel the sums of its columns, [32] of int32; or
 * [columns / 32][inner / 2][32][2] of bfloat16. The struct needs inner, columns and b_type; sizes
 * of packed factors and of this workspace are in bytes. */
DSO_OP_API int64_t dso_op_lowp_matmul_packed_size(const struct dso_op_lowp_matmul *product);
DSO_OP_API void dso_op_lowp_matmul_pack(const struct dso_op_lowp_matmul *product, const void *b,
                                        int64_t b_row, int64_t b_column, void *packed);

/* ---- Between float32 and integers of 8 bits, for adjacent elements ----
 *
 * Quantised: zero + x / scale, rounded to the nearest integer, ties to even, and limited. A zero of
 * NULL is 0. `type` is that of the integers and of their zero. */
DSO_OP_API int dso_op_quantize(const float *x, int64_t count, const float *scale, const void *zero,
                               enum dso_op_type type, void *out);
DSO_OP_API int dso_op_dequantize(const void *x, int64_t count, const float *scale, const void *zero,
                                 enum dso_op_type type, float *out);
/* The scale and the zero of uint8 with which the integers reach over all of x, and 0. */
DSO_OP_API int dso_op_quantize_range(const float *x, int64_t count, float *scale, uint8_t *zero);

/* ---- Images ----
 *
 * An image is [batch][channels][height][width] with `block` 1 (NCHW), or
 * [batch][channels / 16, rounded up][height][width][16] with `block` 16 (NCHW16c), the fast layout.
 * Channels of the last block that are missing are 0, in inputs and outputs.
 *
 * `data` is the first pixel. `padding` is how many rows and columns of zeros surround every plane in
 * memory: a convolution whose window needs no more of them reads the image in place, else it
 * copies the image into the workspace first. An operator writes the padding of its output. If planes
 * are less than height + 2 * padding rows apart, there are columns of zeros only. */
struct dso_op_image {
  float *data;
  int64_t channels, height, width; /* without the padding */
  int64_t block, padding;
  int64_t batch, plane, row; /* distances: of images, planes or blocks, and rows */
};

/* ---- Convolution of `batch` images ----
 *
 * Images that follow each other may be the depths of volumes. The window then reads `kernel` images
 * of a volume, which begin `pad` images before it for the first output; those outside are zeros. */
struct dso_op_depth {
  int64_t in, out; /* images of a volume; 0: no volumes */
  int64_t kernel, stride, dilation, pad;
};

struct dso_op_conv2d {
  int64_t batch;               /* of the output: its volumes times depth.out */
  struct dso_op_image in, out; /* in.data is only read */
  int64_t groups;              /* 0 is the same as 1 */
  int64_t kernel[2], stride[2], dilation[2], pad[2]; /* y, x; pad: at the top and at the left */
  struct dso_op_depth depth;
  const void *weight;           /* packed */
  enum dso_op_type weight_type; /* float32; float16 or bfloat16 if it is not depthwise */
  struct dso_op_after after;
  float *workspace;
};

DSO_OP_API int dso_op_conv2d(const struct dso_op_conv2d *conv);
DSO_OP_API int64_t dso_op_conv2d_workspace(const struct dso_op_conv2d *conv);

/* From ONNX's order, [outputs][channels / groups][depth.kernel][kernel y][kernel x]. The layout
 * depends on channels, groups, kernels and in.block; docs/operators.md describes it. */
DSO_OP_API int64_t dso_op_conv2d_packed_size(const struct dso_op_conv2d *conv);
DSO_OP_API void dso_op_conv2d_pack(const struct dso_op_conv2d *conv, const float *weight,
                                   float *packed);

/* ---- Convolution of images of 8-bit integers ----
 *
 * An image is [batch][channels][height][width] with `block` 1, or [batch][channels / 32, rounded up]
 * [height][width][32] with `block` 32; channels of the last block that are missing are 0. Groups that
 * are not depthwise have planar images. Outside of an image is a_zero. */
struct dso_op_lowp_image {
  void *data;
  int64_t channels, height, width, block;
};

struct dso_op_lowp_conv2d {
  int64_t batch;
  struct dso_op_lowp_image in, out; /* in.data is only read; float32 results are planar */
  enum dso_op_type in_type, weight_type, out_type;
  int64_t groups;                                    /* 0 is the same as 1 */
  int64_t kernel[2], stride[2], dilation[2], pad[2]; /* as in struct dso_op_conv2d */
  const void *weight;                                /* packed */
  const void *a_zero, *b_zero;                       /* of the image and of the weight */
  int64_t b_zero_step;                               /* 1: one per output channel */
  struct dso_op_rescale after;
  void *workspace;
};

/* Sizes are in bytes; packing needs channels, groups, kernel and weight_type. */
DSO_OP_API int dso_op_lowp_conv2d(const struct dso_op_lowp_conv2d *conv);
DSO_OP_API int64_t dso_op_lowp_conv2d_workspace(const struct dso_op_lowp_conv2d *conv);
DSO_OP_API int64_t dso_op_lowp_conv2d_packed_size(const struct dso_op_lowp_conv2d *conv);
DSO_OP_API void dso_op_lowp_conv2d_pack(const struct dso_op_lowp_conv2d *conv, const void *weight,
                                        void *packed);

/* Copy `batch` images from one layout to another, and write the padding of `out`. */
DSO_OP_API int dso_op_reorder(int64_t batch, const struct dso_op_image *in,
                              const struct dso_op_image *out);

/* ---- Resizing: images of other extents, with pixels between its pixels ---- */

/* As in ONNX's operator Resize: how many pixels an output is made of, where an output is in the
 * image, and for one pixel which. */
enum dso_op_resize_mode { DSO_OP_NEAREST, DSO_OP_LINEAR, DSO_OP_CUBIC };
enum dso_op_places {
  DSO_OP_HALF_PIXEL,
  DSO_OP_HALF_PIXEL_SYMMETRIC,
  DSO_OP_PYTORCH_HALF_PIXEL,
  DSO_OP_ALIGN_CORNERS,
  DSO_OP_ASYMMETRIC
};
enum dso_op_nearest {
  DSO_OP_ROUND_PREFER_FLOOR,
  DSO_OP_ROUND_PREFER_CEIL,
  DSO_OP_FLOOR,
  DSO_OP_CEIL
};

struct dso_op_resize {
  int64_t batch;
  struct dso_op_image in, out; /* of one layout; in.data is only read, its padding is not */
  float scale[2];              /* outputs of a pixel: y, x; 0: the quotient of the extents */
  enum dso_op_resize_mode mode;
  enum dso_op_places places;
  enum dso_op_nearest nearest;
  float cubic;         /* the parameter of four weights */
  int exclude_outside; /* pixels beside the image have no weight, else they are those at its edge */
  float *workspace;
};

/* Returns -1 if an empty image has outputs. */
DSO_OP_API int dso_op_resize(const struct dso_op_resize *given);
DSO_OP_API int64_t dso_op_resize_workspace(const struct dso_op_resize *given);

/* ---- Attention: out = softmax(scale * q * transposed k + mask) * v, for each head ---- */

struct dso_op_attention {
  int64_t batch, heads;
  int64_t kv_heads;   /* a divisor of heads: adjacent heads share k and v; 0: as many as heads */
  int64_t rows, keys; /* of q, and of k and v */
  int64_t size, value_size; /* of a row of q and k, and of a row of v; value_size 0: size */
  const float *q, *k, *v;   /* rows are adjacent floats */
  int64_t q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row;
  const float *mask; /* added to the scaled products, or NULL; distances of 0 use it again */
  int64_t mask_batch, mask_head, mask_row;
  int is_causal; /* row i sees the keys up to i + past */
  int64_t past;
  float scale; /* 0: 1 / sqrt(size) */
  float *out;  /* a row that sees no key is 0 */
  int64_t out_batch, out_head, out_row;
  float *workspace;
};

DSO_OP_API int dso_op_attention(const struct dso_op_attention *attention);
DSO_OP_API int64_t dso_op_attention_workspace(const struct dso_op_attention *attention);

/* ---- Pooling: the greatest value or the average of each window ---- */

struct dso_op_pooling {
  int64_t batch;
  struct dso_op_image in, out;                       /* in.data is only read; its padding is not */
  int64_t kernel[2], stride[2], dilation[2], pad[2]; /* y, x; pad: at the top and at the left */
  int64_t pad_after[2]; /* at the bottom and at the right; read with count_padding only */
  int is_average;
  int count_padding; /* divide by the taps in the padded image, else by those in the image */
};

/* The extents of `out` say how many windows there are. Taps outside of the image take no part. A
 * window that is as large as the image is a global pooling. */
DSO_OP_API int dso_op_pooling(const struct dso_op_pooling *pooling);

/* ---- Normalization of rows: of each by its own mean, size or sum ---- */

enum dso_op_normalization {
  DSO_OP_LAYER,      /* (x - mean) / sqrt(variance + epsilon) * scale + bias */
  DSO_OP_RMS,        /* x / sqrt(mean of x * x + epsilon) * scale + bias */
  DSO_OP_SOFTMAX,    /* exp(x) / sum of exp(x) */
  DSO_OP_LOG_SOFTMAX /* x - log of sum of exp(x) */
};

struct dso_op_normalize {
  int64_t rows, size; /* of a row, whose floats are adjacent */
  enum dso_op_normalization kind;
  const float *x;
  const float *scale, *bias; /* one per float of a row, or NULL; not of the softmaxes */
  float *out;                /* may be x, with the same distance of rows */
  int64_t x_row, out_row;
  float epsilon;
};

DSO_OP_API int dso_op_normalize(const struct dso_op_normalize *rows);

/* ---- Recurrent layers: LSTM, GRU and RNN, step by step ---- */

enum dso_op_cell {
  DSO_OP_LSTM,            /* gates: input, output, forget, cell */
  DSO_OP_GRU,             /* update, reset, candidate of the product of the reset state */
  DSO_OP_GRU_RESET_AFTER, /* the same, the product is reset */
  DSO_OP_RNN_TANH,
  DSO_OP_RNN_RELU
};

/* Arrays of `hidden` are [directions][batch][hidden]. `units` is `hidden`, rounded up to 16; what is
 * in the other units of x is 0. */
struct dso_op_recurrent {
  enum dso_op_cell kind;
  int64_t directions; /* 1, or 2, of which the second runs backwards */
  int64_t steps, batch, hidden;
  int is_reverse;      /* of one direction: it runs backwards */
  float clip;          /* of the arguments of activations, from -clip to clip, or 0: none */
  const float *x;      /* the input's products with all biases but `bias`:
                             [steps][batch][directions][gates][units] */
  const float *weight; /* of the state: [directions][gates] matrices (hidden, hidden) as
                             dso_op_matmul_pack writes them */
  const float *bias;   /* of DSO_OP_GRU_RESET_AFTER: added to what is reset, [directions][units] */
  const float *peephole;  /* of DSO_OP_LSTM: [directions][input, output, forget][units], or NULL */
  const float *h, *c;     /* the first states, or NULL: 0 */
  const int32_t *lengths; /* of each row of the batch, 0 to steps, or NULL: steps. y is 0 after it,
                             and the last states are the states at its end; 0: zeros */
  float *y;               /* [steps][directions][batch][hidden], or NULL */
  float *last_h, *last_c; /* or NULL */
  float *workspace;
};

DSO_OP_API int dso_op_recurrent(const struct dso_op_recurrent *layer);
DSO_OP_API int64_t dso_op_recurrent_workspace(const struct dso_op_recurrent *layer);

/* ---- parallel ---- */

/* Run item(data, 0) ... item(data, items - 1), in any order, on the loader's threads if there are
 * any and `work`, an estimate of all multiplications, is worth it. */
DSO_OP_API int dso_op_parallel(void (*item)(const void *data, int64_t index), const void *data,
                               int64_t items, int64_t work);

#ifdef __cplusplus
}
#endif

#endif
