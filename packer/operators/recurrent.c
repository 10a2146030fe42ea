/* Recurrent layers: step by step the products of the state, and the gates of a cell.
 *
 * A panel of 32 units is computed as a whole: its sums of every gate, from one panel of the weight
 * each, and then the state. The old state stays for the other panels, so there are two. */
#include <string.h>

#include "parts.h"

enum { AT_ONCE = 4 }; /* panels of the weight in one item */

/* As many rows have registers for their sums of all these panels. */
#if defined(__AVX512F__)
enum { FEW_ROWS = 3 };
#else
enum { FEW_ROWS = 1 };
#endif

/* The parts of a step: with a reset before the product, GRU needs the gates of all units first. */
enum phase { WHOLE, GATES, CANDIDATE };

struct plan {
  const struct dso_op_recurrent *layer;
  int64_t gates, units;  /* units: hidden, rounded up to whole blocks */
  int64_t row, size;     /* floats of a row of a state, and of one direction */
  int64_t panels, tiles; /* of units, and of rows */
  int64_t wide;          /* panels of units in one item */
  int64_t step;
  enum phase phase;
  float *state, *next, *cell, *reset; /* of each direction; `cell` has the update gates of GRU */
};

INLINE int64_t gates_of(enum dso_op_cell kind) {
  if (kind == DSO_OP_LSTM) return 4;
  return kind <= DSO_OP_GRU_RESET_AFTER ? 3 : 1;
}

/* The gates that a phase computes. */
INLINE int64_t begin_of(enum phase phase) { return phase == CANDIDATE ? 2 : 0; }
INLINE int64_t end_of(enum phase phase, int64_t gates) { return phase == GATES ? 2 : gates; }

/* How many states of each direction are in the workspace. */
static int64_t states_of(const struct dso_op_recurrent *layer) {
  if (layer->kind == DSO_OP_LSTM) return 3;
  return layer->kind == DSO_OP_GRU ? 4 : 2;
}

static struct plan plan_of(const struct dso_op_recurrent *layer) {
  const int64_t blocks = ceil_div(layer->hidden, BLOCK);
  struct plan plan = {.layer = layer, .gates = gates_of(layer->kind), .units = blocks * BLOCK};
  plan.row = (blocks | 1) * BLOCK; /* rows are in different sets of the cache */
  plan.size = layer->batch * plan.row;
  plan.panels = ceil_div(layer->hidden, PANEL);
  plan.tiles = ceil_div(layer->batch, PIXELS);
  return plan;
}

int64_t dso_op_recurrent_workspace(const struct dso_op_recurrent *layer) {
  return states_of(layer) * layer->directions * plan_of(layer).size;
}

/* The rows of one tile of the batch. */
struct rows {
  int64_t first, count;
};

static struct rows rows_of(const struct plan *plan, int64_t tile) {
  const int64_t batch = plan->layer->batch, first = part_begin(batch, plan->tiles, tile);
  return (struct rows){first, part_begin(batch, plan->tiles, tile + 1) - first};
}

/* How many steps a row of the batch has. */
static int64_t length_of(const struct dso_op_recurrent *layer, int64_t row) {
  return layer->lengths != NULL ? layer->lengths[row] : layer->steps;
}

/* The element of the sequence that a row reads and writes in a step. */
static int64_t time_of(const struct plan *plan, int64_t direction, int64_t row, int64_t step) {
  const struct dso_op_recurrent *layer = plan->layer;
  const int is_reverse = direction == 1 || layer->is_reverse;
  const int64_t length = length_of(layer, row);
  return is_reverse && step < length ? length - 1 - step : step;
}

/* The product of the input of a row in a step, of its first gate. */
static const float *input_of(const struct plan *plan, int64_t direction, int64_t row,
                             int64_t step) {
  const struct dso_op_recurrent *layer = plan->layer;
  const int64_t at = time_of(plan, direction, row, step) * layer->batch + row;
  return layer->x + (at * layer->directions + direction) * plan->gates * plan->units;
}

/* ---- Products of the state ---- */

/* A few rows by `count` panels: their sums are independent, which the few of one panel are not. */
INLINE void add_rows(const float *state, int64_t row, int64_t inner, const float *const *weights,
                     float sums[][PIXELS * PANEL], const int rows, const int count) {
  for (int64_t first = 0; first < PANEL; first += VECTORS * LANES) {
    vec sum[AT_ONCE][VECTORS][FEW_ROWS];
    UNROLL
    for (int p = 0; p < count; p++) UNROLL
    for (int v = 0; v < VECTORS; v++) UNROLL
    for (int r = 0; r < rows; r++) sum[p][v][r] = splat(0);
    for (int64_t k = 0; k < inner; k++) UNROLL
    for (int p = 0; p < count; p++) UNROLL
    for (int v = 0; v < VECTORS; v++) {
      const vec factor = load(weights[p] + k * PANEL + first + v * LANES);
      UNROLL
      for (int r = 0; r < rows; r++) sum[p][v][r] += factor * state[r * row + k];
    }
    UNROLL
    for (int p = 0; p < count; p++) UNROLL
    for (int v = 0; v < VECTORS; v++) UNROLL
    for (int r = 0; r < rows; r++) store(sums[p] + r * PANEL + first + v * LANES, sum[p][v][r]);
  }
}

INLINE void multiply_rows(const float *state, int64_t row, int64_t inner,
                          const float *const *weights, float sums[][PIXELS * PANEL], const int rows,
                          int64_t count) {
  if (count == 1) add_rows(state, row, inner, weights, sums, rows, 1);
  else if (count == 2) add_rows(state, row, inner, weights, sums, rows, 2);
  else if (count == 3) add_rows(state, row, inner, weights, sums, rows, 3);
  else add_rows(state, row, inner, weights, sums, rows, 4);
}

/* Return 1 if there are kernels for so few rows. */
static int multiply_few(const float *state, int64_t row, int64_t inner, const float *const *weights,
                        float sums[][PIXELS * PANEL], int64_t rows, int64_t count) {
  if (rows == 1) multiply_rows(state, row, inner, weights, sums, 1, count);
#if defined(__AVX512F__)
  else if (rows == 2) multiply_rows(state, row, inner, weights, sums, 2, count);
  else if (rows == 3) multiply_rows(state, row, inner, weights, sums, 3, count);
#endif
  return rows <= FEW_ROWS;
}

static void multiply(const struct plan *plan, const float *state, int64_t rows,
                     const float *const *weights, float sums[][PIXELS * PANEL], int64_t count) {
  const int64_t inner = plan->layer->hidden;
  if (multiply_few(state, plan->row, inner, weights, sums, rows, count)) return;
  struct tile tile = {.step = plan->row,
                      .blocks = 1,
                      .block = inner,
                      .last = inner,
                      .taps = {1, 1, 1},
                      .weight_step = PANEL};
  const struct position position = {.data = state, .rows = 1, .columns = (int)rows};
  for (int64_t i = 0; i < count; i++) {
    tile.weight = weights[i];
    dso_op_tiles(&tile, &position, 1, PANEL, sums[i], NULL);
  }
}

/* ---- Cells: LANES units of one row ---- */

/* Where a row's vectors are. */
struct unit {
  const float *x;             /* the product of the input, of the first gate */
  int64_t gate;               /* to the next gate in `x` */
  const float *sums[AT_ONCE]; /* the products of the state, of each gate */
  const float *bias;          /* of the product after the reset */
  const float *peephole;      /* or NULL */
  const float *state;
  float *cell, *reset, clip;
};

INLINE vec limited(const struct unit *unit, vec sum) {
  return unit->clip > 0 ? at_most(at_least(sum, -unit->clip), unit->clip) : sum;
}

INLINE vec sum_of(const struct unit *unit, int64_t number) {
  return load(unit->x + number * unit->gate) + load(unit->sums[number]);
}

INLINE vec gate(const struct unit *unit, int64_t n) { return limited(unit, sum_of(unit, n)); }

INLINE vec looked(const struct unit *unit, int64_t number, vec cell) {
  if (unit->peephole == NULL) return gate(unit, number);
  return limited(unit, sum_of(unit, number) + load(unit->peephole + number * unit->gate) * cell);
}

INLINE vec lstm(const struct unit *unit) {
  const vec old = load(unit->cell);
  const struct quotient input = sigmoid_of(looked(unit, 0, old));
  const struct quotient forget = sigmoid_of(looked(unit, 2, old));
  const vec cell = divided(forget) * old + product_of(input, tanh_of(gate(unit, 3)));
  store(unit->cell, cell);
  const struct quotient output = sigmoid_of(looked(unit, 1, cell));
  return product_of(output, tanh_of(cell));
}

INLINE vec mixed(vec update, vec candidate, vec state) {
  return candidate + update * (state - candidate);
}

INLINE vec gru_reset_after(const struct unit *unit) {
  const vec update = divided(sigmoid_of(gate(unit, 0))), reset = divided(sigmoid_of(gate(unit, 1)));
  const vec sum = load(unit->sums[2]) + load(unit->bias);
  const vec argument = limited(unit, load(unit->x + 2 * unit->gate) + reset * sum);
  return mixed(update, divided(tanh_of(argument)), load(unit->state));
}

INLINE void gru_gates(const struct unit *unit) {
  store(unit->cell, divided(sigmoid_of(gate(unit, 0))));
  store(unit->reset, divided(sigmoid_of(gate(unit, 1))) * load(unit->state));
}

INLINE vec gru_candidate(const struct unit *unit) {
  return mixed(load(unit->cell), divided(tanh_of(gate(unit, 2))), load(unit->state));
}

INLINE vec next_state(const struct unit *unit, const enum dso_op_cell kind) {
  if (kind == DSO_OP_LSTM) return lstm(unit);
  if (kind == DSO_OP_GRU) return gru_candidate(unit);
  if (kind == DSO_OP_GRU_RESET_AFTER) return gru_reset_after(unit);
  return kind == DSO_OP_RNN_TANH ? divided(tanh_of(gate(unit, 0))) : at_least(gate(unit, 0), 0);
}

/* ---- Steps ---- */

/* A panel of units of one row, from the sums of its gates in row `r` of a tile. */
INLINE void finish_row(const struct plan *plan, int64_t direction, int64_t row, int64_t panel,
                       float *const sums[AT_ONCE], int64_t r, const enum dso_op_cell kind,
                       const enum phase phase) {
  const struct dso_op_recurrent *layer = plan->layer;
  const int64_t units = plan->units, first = panel * PANEL, end = min(first + PANEL, units);
  const int64_t begin_gate = begin_of(phase), end_gate = end_of(phase, gates_of(kind));
  const int64_t after = min(plan->step + 1, layer->steps - 1);
  const float *x = input_of(plan, direction, row, plan->step);
  /* Where the next item reads, from far away. */
  const float *soon = end < units ? x + PANEL : input_of(plan, direction, row, after) - first;
  const int64_t of_row = direction * plan->size + row * plan->row;
  for (int64_t u = first; u < end; u += LANES) {
    struct unit unit = {.x = x + u, .gate = units, .state = plan->state + of_row + u};
    unit.clip = layer->clip;
    UNROLL
    for (int64_t g = begin_gate; g < end_gate; g++) {
      unit.sums[g] = sums[g] + r * PANEL + u - first;
      __builtin_prefetch(soon + g * units + u, 0, 2);
    }
    if (kind == DSO_OP_LSTM || kind == DSO_OP_GRU) unit.cell = plan->cell + of_row + u;
    if (kind == DSO_OP_GRU) unit.reset = plan->reset + of_row + u;
    if (kind == DSO_OP_GRU_RESET_AFTER) unit.bias = layer->bias + direction * units + u;
    if (kind == DSO_OP_LSTM && layer->peephole != NULL)
      unit.peephole = layer->peephole + direction * 3 * units + u;
    if (phase == GATES) gru_gates(&unit);
    else store(plan->next + of_row + u, next_state(&unit, kind));
  }
}

/* A panel of units of one tile of rows. A row whose sequence is over keeps its state. */
INLINE void finish(const struct plan *plan, int64_t direction, struct rows rows, int64_t panel,
                   float *const sums[AT_ONCE], const enum dso_op_cell kind,
                   const enum phase phase) {
  const struct dso_op_recurrent *layer = plan->layer;
  const int64_t first = panel * PANEL, units = min(layer->hidden - first, PANEL);
  const size_t nbytes = (size_t)units * sizeof(float);
  for (int64_t r = 0; r < rows.count; r++) {
    const int64_t row = rows.first + r, time = time_of(plan, direction, row, plan->step);
    const int64_t at = direction * plan->size + row * plan->row + first;
    const int is_over = plan->step >= length_of(layer, row);
    if (is_over) memcpy(plan->next + at, plan->state + at, nbytes);
    else finish_row(plan, direction, row, panel, sums, r, kind, phase);
    if (layer->y == NULL || phase == GATES) continue;
    const int64_t of_row = (time * layer->directions + direction) * layer->batch + row;
    float *y = layer->y + of_row * layer->hidden + first;
    if (is_over) memset(y, 0, nbytes);
    else memcpy(y, plan->next + at, nbytes);
  }
}

static void finish_any(const struct plan *plan, int64_t direction, struct rows rows, int64_t panel,
                       float *const sums[AT_ONCE]) {
  switch (plan->layer->kind) {
    case DSO_OP_LSTM: finish(plan, direction, rows, panel, sums, DSO_OP_LSTM, WHOLE); break;
    case DSO_OP_GRU:
      if (plan->phase == GATES) finish(plan, direction, rows, panel, sums, DSO_OP_GRU, GATES);
      else finish(plan, direction, rows, panel, sums, DSO_OP_GRU, CANDIDATE);
      break;
    case DSO_OP_GRU_RESET_AFTER:
      finish(plan, direction, rows, panel, sums, DSO_OP_GRU_RESET_AFTER, WHOLE);
      break;
    case DSO_OP_RNN_TANH: finish(plan, direction, rows, panel, sums, DSO_OP_RNN_TANH, WHOLE); break;
    case DSO_OP_RNN_RELU: finish(plan, direction, rows, panel, sums, DSO_OP_RNN_RELU, WHOLE); break;
  }
}

/* One item: `wide` panels of units of one tile of rows. */
static void advance(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_recurrent *layer = plan->layer;
  const int64_t of_direction = ceil_div(plan->panels, plan->wide) * plan->tiles;
  const int64_t direction = index / of_direction, part = index % of_direction;
  const struct rows rows = rows_of(plan, part % plan->tiles);
  const int64_t first = part / plan->tiles * plan->wide;
  const int64_t end = min(first + plan->wide, plan->panels);
  const int64_t begin_gate = begin_of(plan->phase), end_gate = end_of(plan->phase, plan->gates);
  const float *state = plan->phase == CANDIDATE ? plan->reset : plan->state;
  const float *weights[AT_ONCE] = {NULL};
  _Alignas(64) float sums[AT_ONCE][PIXELS * PANEL];
  int64_t count = 0;
  for (int64_t panel = first; panel < end; panel++)
    for (int64_t g = begin_gate; g < end_gate; g++)
      weights[count++] = layer->weight + ((direction * plan->gates + g) * plan->panels + panel) *
                                             layer->hidden * PANEL;
  multiply(plan, state + direction * plan->size + rows.first * plan->row, rows.count, weights, sums,
           count);
  count = 0;
  for (int64_t panel = first; panel < end; panel++) {
    float *of_gates[AT_ONCE] = {NULL};
    for (int64_t g = begin_gate; g < end_gate; g++) of_gates[g] = sums[count++];
    finish_any(plan, direction, rows, panel, of_gates);
  }
}

static int run_phase(struct plan *plan, enum phase phase) {
  const struct dso_op_recurrent *layer = plan->layer;
  const int64_t gates = end_of(phase, plan->gates) - begin_of(phase);
  plan->phase = phase;
  plan->wide = layer->batch <= FEW_ROWS ? AT_ONCE / gates : 1;
  const int64_t groups = ceil_div(plan->panels, plan->wide);
  return dso_op_parallel(advance, plan, layer->directions * groups * plan->tiles,
                         layer->directions * layer->batch * gates * layer->hidden * layer->hidden);
}

/* ---- First and last states ---- */

/* First states, or zeros. An empty sequence has no states, as in ONNX Runtime. */
static void read_states(const struct plan *plan, const float *from, float *to) {
  const struct dso_op_recurrent *layer = plan->layer;
  const size_t nbytes = (size_t)layer->hidden * sizeof *to;
  for (int64_t row = 0; row < layer->directions * layer->batch; row++, to += plan->row)
    if (from == NULL || length_of(layer, row % layer->batch) == 0) memset(to, 0, nbytes);
    else memcpy(to, from + row * layer->hidden, nbytes);
}

static void write_states(const struct plan *plan, const float *from, float *to) {
  const int64_t hidden = plan->layer->hidden, rows = plan->layer->directions * plan->layer->batch;
  for (int64_t row = 0; row < rows && to != NULL; row++)
    memcpy(to + row * hidden, from + row * plan->row, (size_t)hidden * sizeof *to);
}

int dso_op_recurrent(const struct dso_op_recurrent *layer) {
  struct plan plan = plan_of(layer);
  const int64_t all = layer->directions * plan.size;
  if (layer->batch < 1 || layer->hidden < 1) return 0;
  plan.state = layer->workspace;
  plan.next = plan.state + all;
  if (states_of(layer) > 2) plan.cell = plan.next + all;
  if (states_of(layer) > 3) plan.reset = plan.cell + all;
  read_states(&plan, layer->h, plan.state);
  if (layer->kind == DSO_OP_LSTM) read_states(&plan, layer->c, plan.cell);
  for (; plan.step < layer->steps; plan.step++) {
    if (run_phase(&plan, layer->kind == DSO_OP_GRU ? GATES : WHOLE)) return -1;
    if (layer->kind == DSO_OP_GRU && run_phase(&plan, CANDIDATE)) return -1;
    float *const old = plan.state;
    plan.state = plan.next, plan.next = old;
  }
  write_states(&plan, plan.state, layer->last_h);
  write_states(&plan, plan.cell, layer->last_c);
  return 0;
}
