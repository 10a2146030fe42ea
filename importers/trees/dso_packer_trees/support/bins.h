/* The walk of rows of bins through trees of at most 256 leaves.
 *
 * Many rows take a tree at once, a byte of a vector each: a node has the rows that reach it, and
 * divides them among its children. The number of a row's leaf is the number of leaves left of it:
 * each step to the right adds the leaves of the left child. One row takes several trees at once, as
 * in walk.h. */

#ifdef __AVX512BW__
#define VECTOR 64
#elif defined __AVX2__
#define VECTOR 32
#else
#define VECTOR 16
#endif
typedef uint8_t lanes __attribute__((vector_size(VECTOR)));

/* Write the leaves of VECTOR rows in a tree; slot s of them is at bins + s * MOST_TILE. */
static inline void divide_rows(const struct inner *inner, uint32_t count, uint32_t first_leaf,
                               const uint8_t *bins, uint32_t *leaves) {
  lanes reach[MOST_BIN_NODES + 1], numbers = {0};
  reach[0] = ~numbers;
  for (uint32_t k = 0; k < count; k++) {
    const struct inner node = inner[k];
    const lanes here = reach[node.self];
    const lanes slot = *(const lanes *)(bins + (size_t)node.slot * MOST_TILE);
    const lanes right = (lanes)(slot > node.rank) & here;
    reach[2 * k + 1] = here ^ right;
    reach[2 * k + 2] = right;
    numbers += right & node.leaves;
  }
  for (int r = 0; r < VECTOR; r++) leaves[r] = first_leaf + numbers[r];
}

/* Write the leaves of a tile in a tree. */
static inline void divide_tile(const struct forest *f, const struct tree *tree, const uint8_t *bins,
                               int64_t rows, uint32_t *leaves) {
  const struct tree *trees = table_of(f, TREES);
  const struct inner *inner =
      (const struct inner *)table_of(f, INNER) + (tree->root - (tree - trees)) / 2;
  const uint64_t end = tree + 1 == trees + f->num_trees ? f->num_nodes : tree[1].root;
  const uint32_t count = (uint32_t)(end - tree->root) / 2;
  for (int64_t r = 0; r < rows; r += VECTOR)
    divide_rows(inner, count, tree->first_leaf, bins + r, leaves + r);
}

static inline const struct node_bin *step_bin(const struct node_bin *node, const uint8_t *row) {
  return node + node->child + (row[node->slot] > node->rank);
}

/* Write the leaves that one row reaches in `count` trees, at most LANES. */
static inline void walk_bins(const struct forest *f, const struct tree *trees, uint32_t count,
                             const uint8_t *row, uint32_t *leaves) {
  const struct node_bin *at[LANES];
  uint32_t depth = 0;
  for (uint32_t k = 0; k < LANES; k++) {
    const struct tree *tree = &trees[k < count ? k : count - 1];
    at[k] = (const struct node_bin *)table_of(f, NODES) + tree->root;
    depth = tree->depth > depth ? tree->depth : depth;
  }
  for (uint32_t d = 0; d < depth; d += STEPS) {
    uint32_t moved = 0;
    for (uint32_t s = 1; s < STEPS; s++)
      for (int k = 0; k < LANES; k++) at[k] = step_bin(at[k], row);
    for (int k = 0; k < LANES; k++) {
      at[k] = step_bin(at[k], row);
      moved |= at[k]->child;
    }
    if (!moved) break;
  }
  for (uint32_t k = 0; k < count; k++) leaves[k] = trees[k].first_leaf + at[k]->rank;
}
