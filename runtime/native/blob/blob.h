/* The blob: entries and import tree, in both dialects (docs/format.md).
 *
 * runtime/blob.py is the same in Python; both accept the same bytes, and refuse others with the
 * same text. */
#pragma once

#include "blob/reader.h"

struct blob_entry {
  struct span key;       /* the key in the blob; an alias is not replaced */
  size_t offset, nbytes; /* the place of the entry, key included */
  dso_object *module;    /* the module of the payload, owned; NULL for _lib and _import_tree */
};

struct blob {
  enum dialect dialect;
  size_t num_entries;
  struct blob_entry *entries; /* in wire order, with _import_tree */
  int has_tree;
  size_t num_row_ptr, num_children; /* the lengths of the CSR arrays */
  uint64_t *row_ptr, *child_indices;
};

#define BLOB_LIB "_lib"                 /* the key of the place of the library itself */
#define BLOB_IMPORT_TREE "_import_tree" /* the key of the tree, in dialect tvm */

/* The functions that make the modules of a blob. */
struct blob_loader {
  void *context;
  /* Read the payload of `key`, and store an owned module. Returns 1, 0 if the key has no loader
   * (then the reader was not moved), or -1 with the error raised. */
  int (*load)(void *context, struct span key, struct reader *reader, dso_object **module);
  /* Make a module that carries a payload of an unknown type. Returns NULL with an error raised. */
  dso_object *(*carry)(void *context, struct span key, struct span payload, dso_object *owner);
  /* Raise LoaderNotFoundError for an entry at `at`. Returns -1. */
  int (*refuse)(void *context, const struct reader *reader, struct span key, size_t at);
  /* True for a module whose imports are in its payload; the tree must not give it others. NULL:
   * no module is such. */
  int (*carries_imports)(void *context, const dso_object *module);
};

/* Parse a blob; the payloads are not copied. `manifest` is the text of __packer_manifest, which has
 * the lengths of entries without a loader; its data is NULL without one. Returns 0 with a blob of
 * at most one _lib, root 0, indices in range, no cycle and no unreachable module; or -1 with
 * BlobFormatError, LoaderNotFoundError or OutOfMemoryError raised, and nothing to free. */
int blob_parse(struct reader *reader, const struct blob_loader *loader, struct span manifest,
               struct blob *blob);
void blob_clear(struct blob *blob); /* releases its modules */

/* Check and skip the nbytes header of a blob symbol. Returns 0, or -1 with BlobFormatError. */
int blob_skip_header(struct reader *reader);

/* Store the CRC-32 of the structure of a blob (runtime/blob.py, structure_of). Returns 0. */
int blob_structure(const struct blob *blob, uint32_t *crc);
/* Compare it with the one that the library lists. Returns 0, or -1 with BlobFormatError. */
int blob_check_structure(const struct reader *reader, const struct blob *blob, uint32_t expected);

/* Call `link` for each import of each node: nodes are the entries without _import_tree, by their
 * index there; each child once, in import order. Without a tree there is none: the library then
 * imports all. Returns 0, the first nonzero value, or -1 with OutOfMemoryError raised. */
int blob_visit_imports(const struct blob *blob,
                       int (*link)(void *context, size_t parent, size_t child), void *context);
