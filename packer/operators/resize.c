/* Resizing: pixels between the pixels of an image. Each axis is on its own: a row of outputs is first
 * made of some rows of the image, and then its pixels of some pixels of that row. */
#include "image.h"

enum {
  TAPS = 4,    /* at most, along an axis */
  ROOM = 4096, /* floats of a part of a row */
  ROWS = 32,   /* of outputs, of an item for a thread */
};

/* The pixels of the image that an output is made of, along one axis. */
struct taps {
  int32_t at[TAPS];
  float weight[TAPS];
};

/* The taps of all outputs of an axis, and the output after the last one of the same pixels. */
struct axis {
  int count; /* of the taps of an output */
  int is_wider;
  int32_t *at[TAPS], *after;
  float *weight[TAPS];
};

struct resize {
  const struct dso_op_resize *given;
  struct axis rows, columns;
};

static float floor_of(float x) {
  const float whole = (float)(int64_t)x;
  return whole > x ? whole - 1 : whole;
}

/* A number of outputs in pixels of the image. Each step is rounded as ONNX Runtime rounds it. */
static float scaled(float x, float scale, int64_t in, int64_t out) {
  return scale != 0 ? x / scale : x * (float)in / (float)out;
}

/* Where output i is in the image. */
static float place_of(const struct dso_op_resize *given, float scale, int64_t in, int64_t out,
                      int64_t i) {
  const float x = (float)i, center = scaled(x + 0.5f, scale, in, out);
  switch (given->places) {
    case DSO_OP_ASYMMETRIC: return scaled(x, scale, in, out);
    case DSO_OP_ALIGN_CORNERS: /* the outputs that were asked for, which need not be a whole number */
      return out == 1 ? 0
                      : x * (float)(in - 1) / ((scale != 0 ? scale * (float)in : (float)out) - 1);
    case DSO_OP_PYTORCH_HALF_PIXEL: return out == 1 ? 0 : center - 0.5f;
    case DSO_OP_HALF_PIXEL_SYMMETRIC: /* by how much the outputs are fewer than those asked for */
      return ((float)in - scaled((float)out, scale, in, out)) / 2 + center - 0.5f;
    default: return center - 0.5f;
  }
}

static float nearest_of(const struct dso_op_resize *given, float place) {
  const float low = floor_of(place), rest = place - low;
  switch (given->nearest) {
    case DSO_OP_FLOOR: return low;
    case DSO_OP_CEIL: return rest > 0 ? low + 1 : low;
    case DSO_OP_ROUND_PREFER_CEIL: return rest >= 0.5f ? low + 1 : low;
    default: return rest > 0.5f ? low + 1 : low;
  }
}

/* The weight of a pixel at a distance from the output, for four pixels. */
static float cubic_of(float a, float distance) {
  const float x = distance < 0 ? -distance : distance;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static struct taps cubic_taps(const struct dso_op_resize *given, float place, int64_t in) {
  struct taps taps = {0};
  const float first = floor_of(place) - 1;
  float sum = 0;
  for (int i = 0; i < TAPS; i++) {
    const int64_t at = (int64_t)first + i;
    taps.at[i] = (int32_t)max(min(at, in - 1), 0);
    taps.weight[i] = cubic_of(given->cubic, place - (float)at);
    if (given->exclude_outside && at != taps.at[i]) taps.weight[i] = 0;
    sum += taps.weight[i];
  }
  for (int i = 0; i < TAPS && given->exclude_outside; i++) taps.weight[i] /= sum;
  return taps;
}

static struct taps linear_taps(float place, int64_t in) {
  const float last = (float)(in - 1), x = place < 0 ? 0 : place > last ? last : place;
  struct taps taps = {.at = {(int32_t)x}};
  taps.at[1] = (int32_t)min(taps.at[0] + 1, in - 1);
  taps.weight[1] = x - (float)taps.at[0];
  taps.weight[0] = 1 - taps.weight[1];
  return taps;
}

static int is_of_same(const struct axis *axis, int64_t one, int64_t other) {
  for (int t = 0; t < axis->count; t++)
    if (axis->at[t][one] != axis->at[t][other]) return 0;
  return 1;
}

/* Write the taps of all outputs of an axis into the workspace. */
static struct axis axis_of(const struct dso_op_resize *given, int d, float *workspace) {
  const int64_t in = d ? given->in.width : given->in.height;
  const int64_t out = d ? given->out.width : given->out.height;
  const float scale = given->scale[d];
  const int is_same = in == out && (scale == 0 || scale == 1);
  struct axis axis = {.count = 1, .is_wider = out >= 3 * in};
  if (!is_same && given->mode != DSO_OP_NEAREST) axis.count = given->mode == DSO_OP_CUBIC ? 4 : 2;
  for (int t = 0; t < TAPS; t++, workspace += 2 * out) {
    axis.at[t] = (int32_t *)(void *)workspace;
    axis.weight[t] = workspace + out;
  }
  axis.after = (int32_t *)(void *)workspace;
  for (int64_t i = 0; i < out; i++) {
    const float place = is_same ? (float)i : place_of(given, scale, in, out, i);
    struct taps taps = {{is_same ? (int32_t)i : 0}, {1}};
    if (axis.count == 1 && !is_same)
      taps.at[0] = (int32_t)max(min((int64_t)nearest_of(given, place), in - 1), 0);
    else if (axis.count == 2) taps = linear_taps(place, in);
    else if (axis.count == TAPS) taps = cubic_taps(given, place, in);
    for (int t = 0; t < axis.count; t++) {
      axis.at[t][i] = taps.at[t];
      axis.weight[t][i] = taps.weight[t];
    }
  }
  for (int64_t i = out - 1; i >= 0; i--)
    axis.after[i] = i + 1 < out && is_of_same(&axis, i, i + 1) ? axis.after[i + 1] : (int32_t)i + 1;
  return axis;
}

/* Some floats of output row y, between rows of a plane. */
INLINE void join_rows(const float *plane, int64_t row, const struct axis *axis, int64_t y,
                      int64_t count, float *to, const int number) {
  const float *from[TAPS];
  float weight[TAPS];
  for (int t = 0; t < number; t++) {
    from[t] = plane + axis->at[t][y] * row;
    weight[t] = axis->weight[t][y];
  }
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    vec sum = load(from[0] + i) * weight[0];
    UNROLL
    for (int t = 1; t < number; t++) sum += load(from[t] + i) * weight[t];
    store(to + i, sum);
  }
  for (; i < count; i++) {
    float sum = from[0][i] * weight[0];
    UNROLL
    for (int t = 1; t < number; t++) sum += from[t][i] * weight[t];
    to[i] = sum;
  }
}

INLINE float pixel_of(const float *row, const struct axis *axis, int64_t x, const int number) {
  if (number == 1) return row[axis->at[0][x]];
  float sum = row[axis->at[0][x]] * axis->weight[0][x];
  UNROLL
  for (int t = 1; t < number; t++) sum += row[axis->at[t][x]] * axis->weight[t][x];
  return sum;
}

/* Pixels `begin` ... `end` - 1 of a row of a plane. Outputs of the same pixels are one vector, which
 * reaches over the next ones: these are written later. */
INLINE void join_plane(const float *row, const struct axis *axis, int64_t begin, int64_t end,
                       float *to, const int number) {
  int64_t x = begin;
  while (axis->is_wider && x + LANES <= end) {
    const int64_t after = min(axis->after[x], end);
    for (; x < after && x + LANES <= end; x += LANES) {
      vec sum = splat(row[axis->at[0][x]]);
      if (number > 1) sum *= load(axis->weight[0] + x);
      UNROLL
      for (int t = 1; t < number; t++) sum += row[axis->at[t][x]] * load(axis->weight[t] + x);
      store(to + x, sum);
    }
    x = min(x, after);
  }
  for (; x < end; x++) to[x] = pixel_of(row, axis, x, number);
}

INLINE void join_block(const float *row, const struct axis *axis, int64_t begin, int64_t end,
                       float *to, const int number) {
  for (int64_t x = begin; x < end; x++) UNROLL
  for (int v = 0; v < BLOCK; v += LANES) {
    vec sum = load(row + axis->at[0][x] * BLOCK + v);
    if (number > 1) sum *= axis->weight[0][x];
    UNROLL
    for (int t = 1; t < number; t++)
      sum += load(row + axis->at[t][x] * BLOCK + v) * axis->weight[t][x];
    store(to + x * BLOCK + v, sum);
  }
}

static void join_pixels(const float *row, const struct axis *axis, int64_t begin, int64_t end,
                        float *to, int is_block) {
  if (axis->count == 1 && is_block) join_block(row, axis, begin, end, to, 1);
  else if (axis->count == 2 && is_block) join_block(row, axis, begin, end, to, 2);
  else if (is_block) join_block(row, axis, begin, end, to, TAPS);
  else if (axis->count == 1) join_plane(row, axis, begin, end, to, 1);
  else if (axis->count == 2) join_plane(row, axis, begin, end, to, 2);
  else join_plane(row, axis, begin, end, to, TAPS);
}

/* Output row y of a plane or block, in parts whose pixels of the image have room. */
static void one_row(const struct resize *resize, const float *plane, int64_t y, float *to) {
  const struct dso_op_image *in = &resize->given->in, *out = &resize->given->out;
  const struct axis *rows = &resize->rows, *columns = &resize->columns;
  const int32_t *first = columns->at[0], *last = columns->at[columns->count - 1];
  float between[ROOM];
  for (int64_t x = 0, end; x < out->width; x = end) {
    end = out->width;
    if (rows->count > 1 && (last[end - 1] + 1 - first[x]) * in->block > ROOM)
      for (end = x + 1; (last[end] + 1 - first[x]) * in->block <= ROOM;) end++;
    const int64_t count = (last[end - 1] + 1 - first[x]) * in->block;
    const float *from = plane + first[x] * in->block, *row = between;
    if (rows->count == 1) row = from + rows->at[0][y] * in->row;
    else if (rows->count == 2) join_rows(from, in->row, rows, y, count, between, 2);
    else join_rows(from, in->row, rows, y, count, between, TAPS);
    join_pixels(row - first[x] * in->block, columns, x, end, to, out->block == BLOCK);
  }
}

/* Some rows of a plane or block of one image. */
static void item(const void *data, int64_t index) {
  const struct resize *resize = data;
  struct dso_op_image in = resize->given->in, out = resize->given->out;
  const int64_t parts = ceil_div(out.height, ROWS), planes = planes_of(&out);
  const int64_t part = index % parts, p = index / parts % planes, batch = index / parts / planes;
  const float *plane = in.data + batch * in.batch + p * in.plane;
  const int64_t begin = part * ROWS, end = min(begin + ROWS, out.height);
  out.data += batch * out.batch;
  float *row = out.data + p * out.plane + begin * out.row;
  for (int64_t y = begin; y < end; y++, row += out.row) {
    const int is_again =
        resize->rows.count == 1 && y > begin && is_of_same(&resize->rows, y - 1, y);
    if (is_again) memcpy(row, row - out.row, (size_t)(out.width * out.block) * sizeof *row);
    else one_row(resize, plane, y, row);
  }
  if (part == 0 && out.padding) dso_op_write_padding(&out, p, 1);
}

int64_t dso_op_resize_workspace(const struct dso_op_resize *given) {
  return (given->out.height + given->out.width) * (2 * TAPS + 1);
}

int dso_op_resize(const struct dso_op_resize *given) {
  const struct dso_op_image *in = &given->in, *out = &given->out;
  const int64_t floats = given->batch * planes_of(out) * out->block * out->height * out->width;
  if (!floats) return 0;
  if (in->height < 1 || in->width < 1) return -1;
  struct resize resize = {.given = given, .rows = axis_of(given, 0, given->workspace)};
  resize.columns = axis_of(given, 1, given->workspace + out->height * (2 * TAPS + 1));
  return dso_op_parallel(item, &resize, given->batch * planes_of(out) * ceil_div(out->height, ROWS),
                         floats);
}
