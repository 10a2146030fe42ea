/* A forest in memory: pack.py writes it, forest_of checks it. The structures and all their checks
 * are together. */
#ifndef DSO_TREES_FOREST_H
#define DSO_TREES_FOREST_H

#include <stdlib.h>

#include "rows.h"

enum kind {
  NAN_RIGHT,
  NAN_LEFT,
  ZERO_RIGHT,
  ZERO_LEFT,
  NAN_ZERO,
  LAST_NUMBER = NAN_ZERO,
  CATEGORY_RIGHT,
  CATEGORY_LEFT,
  TRUNCATED_RIGHT,
  EXACT_RIGHT,
  NUM_KINDS
};

#define MOST_CUTS 255 /* of one slot of bins: a rank is a byte */
#define IS_CATEGORY (UINT32_C(1) << 31)

struct slot {
  uint32_t column, count; /* count: the cuts of the column, in order, if rows become bins */
};
struct tree {
  uint32_t root, depth, first_leaf, target;
};
struct node_f32 {
  float threshold;
  uint32_t slot, child;
};
struct node_f64 {
  double threshold;
  uint32_t slot, child;
};
struct node_bin {
  uint16_t slot;
  uint8_t rank, child; /* child: how many nodes after this one */
};
struct inner {
  uint16_t slot;
  uint8_t rank, leaves; /* leaves: of the left child */
  uint16_t self, unused;
};
struct function {
  double constant;
  uint32_t first, count;
};
struct term {
  double coefficient;
  uint32_t column, unused;
};
struct span {
  uint32_t first, count;
};

enum link {
  IDENTITY,
  SIGMOID,
  SOFTMAX,
  EXP,
  CLASS,
  STEP,
  SIGNED_SQUARE,
  LOG1P_EXP,
  TWO_CLASSES,
  ISOLATION,
  COMPLEMENT,
  UP_TO_ONE,
  NUM_LINKS
};

enum layout { NODES_OF_NUMBERS, BINS };
#define MOST_BIN_NODES 511 /* of 256 leaves, whose number is a byte */

enum table {
  SLOTS,
  TREES,
  NODES,
  VALUES,
  LEAF_IDS,
  BASE,
  SETS,
  WORDS,
  CUTS,
  INNER,
  FUNCTIONS,
  TERMS,
  NUM_TABLES
};

struct forest {
  char magic[8];
  uint32_t version, checksum;
  uint32_t is_row_f64, is_value_f64, link, num_features, num_slots, num_trees, num_sums, width,
      num_scores, num_sets, layout, num_columns, is_base_last, is_linear;
  uint64_t num_nodes, num_leaves;
  double divisor, parameter;
  uint32_t kind_ends[10];
  uint64_t offsets[NUM_TABLES];
};

static inline const void *table_of(const struct forest *forest, enum table table) {
  return (const char *)forest + forest->offsets[table];
}

/* ---- Checks, once for each forest: evaluation relies on all of them ---- */

/* The tables must be inside the tensor, in order, and aligned. */
static inline const char *check_tables(const struct forest *f, uint64_t nbytes) {
  if (nbytes < sizeof *f || memcmp(f->magic, "dsoforst", 8) != 0) return "magic";
  if (f->version != 1) return "version";
  if (f->is_row_f64 > 1 || f->is_value_f64 > 1) return "data types";
  if (!f->num_features || f->num_features > INT32_MAX) return "number of features";
  if (!f->num_trees || !f->num_sums || !f->width || f->width > f->num_sums) return "counts";
  if (f->layout > BINS || (f->layout == BINS && f->num_slots > UINT16_MAX)) return "layout";
  if (f->num_slots >= IS_CATEGORY - 1 || f->num_columns >= IS_CATEGORY - 1 ||
      f->num_nodes > UINT32_MAX)
    return "counts";
  if (f->num_leaves > f->num_nodes || f->num_trees > f->num_nodes ||
      f->num_scores > f->num_sums + 1)
    return "counts";
  if (f->link == CLASS                                  ? f->num_scores != 1
      : f->link == TWO_CLASSES || f->link == COMPLEMENT ? f->num_scores != 2 || f->num_sums != 1
                                                        : f->num_scores != f->num_sums)
    return "number of scores";
  const uint64_t number = f->is_value_f64 ? 8 : 4;
  const uint64_t node = f->layout == BINS ? sizeof(struct node_bin)
                        : f->is_row_f64   ? sizeof(struct node_f64)
                                          : sizeof(struct node_f32);
  const uint64_t inner =
      f->layout == BINS ? (f->num_nodes - f->num_trees) / 2 * sizeof(struct inner) : 0;
  if (f->width > UINT64_C(0xffffffffffff) / number / (f->num_leaves + 1)) return "width";
  const uint64_t sizes[NUM_TABLES] = {f->num_columns * (uint64_t)sizeof(struct slot),
                                      f->num_trees * (uint64_t)sizeof(struct tree),
                                      f->num_nodes * node,
                                      f->num_leaves * f->width * number,
                                      f->num_leaves * 4,
                                      f->num_sums * number,
                                      f->num_sets * (uint64_t)sizeof(struct span),
                                      0,
                                      0,
                                      inner,
                                      f->is_linear ? f->num_leaves * sizeof(struct function) : 0,
                                      0};
  for (int i = 0; i < NUM_TABLES; i++)
    if (f->offsets[i] > nbytes || f->offsets[i] % 64 || sizes[i] > nbytes - f->offsets[i])
      return "offset of a table";
  return NULL;
}

/* The cuts of all columns are inside the tensor, and have one slot for each MOST_CUTS. */
static inline const char *check_cuts(const struct forest *f, uint64_t nbytes) {
  const struct slot *slots = table_of(f, SLOTS);
  const uint64_t most = (nbytes - f->offsets[CUTS]) / (f->is_row_f64 ? 8 : 4);
  uint64_t cuts = 0, num_slots = 0;
  for (uint32_t i = 0; i < f->num_columns; i++) {
    if (!slots[i].count || slots[i].count > most) return "cuts";
    cuts += slots[i].count;
    num_slots += (slots[i].count + MOST_CUTS - 1) / MOST_CUTS;
  }
  if (f->kind_ends[LAST_NUMBER] != f->num_columns) return "kinds of slots";
  return cuts > most || num_slots != f->num_slots ? "cuts" : NULL;
}

static inline const char *check_slots(const struct forest *f, uint64_t nbytes) {
  const struct slot *slots = table_of(f, SLOTS);
  uint32_t at = 0;
  for (uint32_t kind = 0; kind < NUM_KINDS; kind++) {
    if (f->kind_ends[kind] < at || f->kind_ends[kind] > f->num_columns) return "kinds of slots";
    for (; at < f->kind_ends[kind]; at++)
      if (slots[at].column >= f->num_features) return "slot";
  }
  if (at != f->num_columns) return "kinds of slots";
  if (f->layout == BINS) return check_cuts(f, nbytes);
  if (f->num_columns != f->num_slots) return "slots";
  const struct span *sets = table_of(f, SETS);
  const uint64_t num_words = (nbytes - f->offsets[WORDS]) / 4;
  for (uint32_t i = 0; i < f->num_sets; i++)
    if (sets[i].first > num_words || sets[i].count > num_words - sets[i].first) return "set";
  return NULL;
}

/* Return whether a node is a leaf, and the node as one of the widest type. */
static inline int node_at(const struct forest *f, uint32_t i, struct node_f64 *node) {
  const void *nodes = table_of(f, NODES);
  if (f->layout == BINS) {
    const struct node_bin one = ((const struct node_bin *)nodes)[i];
    *node = (struct node_f64){one.rank, one.slot, i + one.child};
  } else if (f->is_row_f64) {
    *node = ((const struct node_f64 *)nodes)[i];
  } else {
    const struct node_f32 one = ((const struct node_f32 *)nodes)[i];
    *node = (struct node_f64){one.threshold, one.slot, one.child};
  }
  return node->child == i;
}

static inline const char *check_node(const struct forest *f, const struct node_f64 *node) {
  const uint32_t slot = node->slot & ~IS_CATEGORY;
  if (!slot || slot > f->num_slots) return "slot of a node";
  if (f->layout == BINS) return NULL;
  const int is_category = slot > f->kind_ends[LAST_NUMBER];
  if (is_category != (node->slot >= IS_CATEGORY)) return "slot of a node";
  if (is_category && !(node->threshold >= 0 && node->threshold < f->num_sets))
    return "set of a node";
  return NULL;
}

/* The children of inner node k are 2k + 1 and 2k + 2; depths are right. `depths` has room for all
 * nodes of the tree. */
static inline const char *check_tree(const struct forest *f, const struct tree *tree, uint32_t end,
                                     uint32_t end_leaf, uint32_t *depths) {
  const double leaves = (double)(end_leaf - tree->first_leaf);
  uint32_t most = 0, inner = 0;
  depths[0] = 0;
  for (uint32_t i = tree->root; i < end; i++) {
    struct node_f64 node;
    const uint32_t depth = depths[i - tree->root], child = 2 * inner + 1;
    if (node_at(f, i, &node)) {
      if (node.slot || !(node.threshold >= 0 && node.threshold < leaves)) return "leaf";
      most = depth > most ? depth : most;
      continue;
    }
    if (node.child <= i || node.child - tree->root != child || child + 2 > end - tree->root)
      return "child of a node";
    const char *wrong = check_node(f, &node);
    if (wrong) return wrong;
    depths[child] = depths[child + 1] = depth + 1;
    inner++;
  }
  if (2 * inner + 1 != end - tree->root || inner + 1 != end_leaf - tree->first_leaf)
    return "number of nodes";
  return most > tree->depth ? "depth of a tree" : NULL;
}

/* The inner nodes of a tree of bins have the tests of its nodes, and the leaves that are left. */
static inline const char *check_inner(const struct forest *f, const struct tree *tree,
                                      uint32_t num_nodes) {
  const struct node_bin *nodes = (const struct node_bin *)table_of(f, NODES) + tree->root;
  const uint32_t t = (uint32_t)(tree - (const struct tree *)table_of(f, TREES));
  const struct inner *inner = (const struct inner *)table_of(f, INNER) + (tree->root - t) / 2;
  uint8_t leaves[MOST_BIN_NODES], first[MOST_BIN_NODES] = {0};
  if (num_nodes > MOST_BIN_NODES) return "nodes of a tree";
  for (uint32_t i = num_nodes; i-- > 0;)
    leaves[i] =
        nodes[i].child ? (uint8_t)(leaves[i + nodes[i].child] + leaves[i + nodes[i].child + 1]) : 1;
  for (uint32_t i = 0; i < num_nodes; i++) {
    const struct node_bin node = nodes[i];
    const uint32_t child = i + node.child;
    if (child == i) {
      if (node.rank != first[i]) return "leaf";
      continue;
    }
    first[child] = first[i];
    first[child + 1] = (uint8_t)(first[i] + leaves[child]);
    if (inner->slot != node.slot || inner->rank != node.rank || inner->self != i ||
        inner->leaves != leaves[child])
      return "inner node";
    inner++;
  }
  return NULL;
}

/* The terms of leaves are inside the tensor, and read columns of the row. */
static inline const char *check_linear(const struct forest *f, uint64_t nbytes) {
  if (!f->is_linear) return NULL;
  if (f->is_linear > 1 || !f->is_value_f64 || f->width != 1) return "linear leaves";
  const struct function *functions = table_of(f, FUNCTIONS);
  const struct term *terms = table_of(f, TERMS);
  const uint64_t num_terms = (nbytes - f->offsets[TERMS]) / sizeof *terms;
  for (uint64_t i = 0; i < f->num_leaves; i++) {
    const struct function one = functions[i];
    if (one.first > num_terms || one.count > num_terms - one.first) return "terms of a leaf";
    for (uint32_t k = 0; k < one.count; k++)
      if (terms[one.first + k].column >= f->num_features) return "column of a term";
  }
  return NULL;
}

static inline const char *check_trees(const struct forest *f) {
  const struct tree *trees = table_of(f, TREES);
  uint32_t most = 1;
  for (uint32_t t = 0; t < f->num_trees; t++) {
    const int is_last = t + 1 == f->num_trees;
    const uint64_t end = is_last ? f->num_nodes : trees[t + 1].root;
    const uint64_t end_leaf = is_last ? f->num_leaves : trees[t + 1].first_leaf;
    if (end > f->num_nodes || trees[t].root >= end) return "root of a tree";
    if (end_leaf > f->num_leaves || trees[t].first_leaf >= end_leaf) return "leaves of a tree";
    if (trees[t].depth >= end - trees[t].root) return "depth of a tree";
    if (trees[t].target > f->num_sums - f->width) return "target of a tree";
    if (end - trees[t].root > most) most = (uint32_t)(end - trees[t].root);
  }
  uint32_t *depths = malloc(most * sizeof *depths);
  if (!depths) return "size";
  const char *wrong = NULL;
  for (uint32_t t = 0; t < f->num_trees && !wrong; t++) {
    const int is_last = t + 1 == f->num_trees;
    const uint32_t end = is_last ? (uint32_t)f->num_nodes : trees[t + 1].root;
    wrong = check_tree(f, &trees[t], end,
                       is_last ? (uint32_t)f->num_leaves : trees[t + 1].first_leaf, depths);
    if (!wrong && f->layout == BINS) wrong = check_inner(f, &trees[t], end - trees[t].root);
  }
  free(depths);
  return wrong;
}

static inline const char *check_forest(const void *data, uint64_t nbytes) {
  const char *wrong = check_tables(data, nbytes);
  if (!wrong) wrong = check_slots(data, nbytes);
  if (!wrong) wrong = check_linear(data, nbytes);
  return wrong ? wrong : check_trees(data);
}

/* Return the forest of a tensor; NULL with the error raised if it is damaged. */
static inline const struct forest *forest_of(const DLTensor *tensor) {
  return checked_weight(tensor, "forest: ", sizeof(struct forest), check_forest);
}

#endif
