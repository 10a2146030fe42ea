/* The blob: entries in wire order, and the import tree.
 *
 * Dialect tvm: u64 count, then per entry a string key and a payload whose loader knows its end; the
 * tree is the payload of the key _import_tree. Dialect tvm-ffi: the tree, then per entry a string
 * key and a string payload. */
#include "blob/blob.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "blob/import_tree.h"
#include "blob/key.h"
#include "blob/manifest.h"

enum { HEADER_NBYTES = 8, LEAST_ENTRY = 9 };

struct parser {
  struct reader *reader;
  const struct blob_loader *loader;
  struct blob *blob;
  struct span manifest_text;
  struct manifest manifest;
};

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for the entries of a blob");
}

/* ---- Payloads */

/* An error that a type's own code raised becomes one of the blob's format. */
static int refuse_payload(const struct reader *reader, uint64_t count, struct span key,
                          size_t start) {
  static const char *const own[] = {"BlobFormatError",     "BytecodeError",
                                    "LibraryLoadError",    "DeviceError",
                                    "OutOfMemoryError",    "FunctionNotFoundError",
                                    "LoaderNotFoundError", "ExportError",
                                    "ToolchainError",      "PackerError"};
  const char *message = "no error was raised", *seen;
  char *kind = NULL;
  if (raised_look(&seen, &message))
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
      if (strcmp(seen, own[i]) == 0) return -1;
  int is_raised = raised_take(count, &kind, &message) > 0;
  (void)reader_fail(reader, start, "the loader of '%.*s' raised %s: %s", (int)key.size, key.data,
                    is_raised ? kind : "RuntimeError", is_raised ? message : "no error was raised");
  raised_free(kind);
  return -1;
}

/* Returns 1, 0 if the key has no loader, or -1. */
static int load(const struct parser *parser, struct reader *reader, struct span key, size_t start,
                dso_object **module) {
  uint64_t count = raised_count();
  int status = parser->loader->load(parser->loader->context, key, reader, module);
  return status >= 0 ? status : refuse_payload(reader, count, key, start);
}

static int carry(const struct parser *parser, struct span key, struct span payload,
                 dso_object **module) {
  *module = parser->loader->carry(parser->loader->context, key, payload, parser->reader->owner);
  return *module != NULL ? 0 : -1;
}

/* ---- Dialect tvm */

static int carry_listed(struct parser *parser, struct span key, size_t start, dso_object **module) {
  struct span payload;
  struct reader *reader = parser->reader;
  if (parser->manifest_text.data == NULL)
    return parser->loader->refuse(parser->loader->context, reader, key, start);
  if (parser->manifest.fields == NULL &&
      manifest_parse(&parser->manifest, parser->manifest_text, reader->path) != 0)
    return -1;
  if (manifest_skip(&parser->manifest, reader, key, start, &payload) != 0) return -1;
  return carry(parser, key, payload, module);
}

static int read_payload(struct parser *parser, struct span key, size_t start, dso_object **module) {
  if (key_is(key, BLOB_LIB)) return 0;
  if (key_is(key, BLOB_IMPORT_TREE)) {
    if (parser->blob->has_tree)
      return reader_fail(parser->reader, start, "a second '_import_tree', expected one");
    return tree_read(parser->reader, parser->blob);
  }
  int status = load(parser, parser->reader, key, start, module);
  return status == 0 ? carry_listed(parser, key, start, module) : status < 0 ? -1 : 0;
}

/* ---- Dialect tvm-ffi */

static int read_sized_payload(struct parser *parser, struct span key, size_t start,
                              dso_object **module) {
  struct reader inner;
  if (key_is(key, BLOB_LIB)) return 0;
  if (reader_sized(parser->reader, &inner) != 0) return -1;
  int status = load(parser, &inner, key, start, module);
  if (status < 0) return -1;
  if (status == 0) {
    struct span payload = {(const char *)inner.bytes + inner.offset, reader_remaining(&inner)};
    return carry(parser, key, payload, module);
  }
  if (reader_remaining(&inner) == 0) return 0;
  return reader_fail(&inner, inner.offset, "%zu bytes after the payload of '%.*s', expected none",
                     reader_remaining(&inner), (int)key.size, key.data);
}

/* ---- Entries */

typedef int (*read_module)(struct parser *parser, struct span key, size_t start,
                           dso_object **module);

static int read_entry(struct parser *parser, read_module read) {
  struct blob *blob = parser->blob;
  struct blob_entry *entry = &blob->entries[blob->num_entries];
  *entry = (struct blob_entry){.offset = parser->reader->offset};
  if (key_read(parser->reader, &entry->key) != 0) return -1;
  blob->num_entries++; /* blob_clear releases the module from here on */
  if (read(parser, entry->key, entry->offset, &entry->module) != 0) return -1;
  entry->nbytes = parser->reader->offset - entry->offset;
  return 0;
}

static int read_entries(struct parser *parser, size_t count, read_module read) {
  parser->blob->entries = heap_new((count + 1) * sizeof *parser->blob->entries);
  if (parser->blob->entries == NULL) return no_memory();
  for (size_t i = 0; i < count; i++) {
    parser->reader->is_last_entry = i + 1 == count;
    if (read_entry(parser, read) != 0) return -1;
  }
  return 0;
}

static int read_unsized(struct parser *parser) {
  struct reader *reader = parser->reader;
  size_t count;
  if (reader_remaining(reader) < sizeof(uint64_t))
    return reader_fail(reader, reader->offset, "a blob of %zu bytes, expected at least 8",
                       reader_remaining(reader));
  if (reader_count(reader, LEAST_ENTRY, UINT64_MAX, &count) != 0) return -1;
  if (count > TREE_MOST_MODULES + 1)
    return reader_fail(reader, 0, "%zu entries, expected at most %d", count, TREE_MOST_MODULES + 1);
  return read_entries(parser, count, read_payload);
}

static int read_sized(struct parser *parser) {
  struct blob *blob = parser->blob;
  if (tree_read(parser->reader, blob) != 0) return -1;
  return read_entries(parser, blob->num_row_ptr > 0 ? blob->num_row_ptr - 1 : 0,
                      read_sized_payload);
}

/* ---- Checks of all entries */

struct nodes {
  const struct parser *parser;
  const struct blob_entry **entries; /* the entries that are nodes */
  size_t count;
  const struct blob_entry *first_library, *second_library, *tree;
};

static void sort_entries(const struct blob *blob, struct nodes *nodes) {
  for (size_t i = 0; i < blob->num_entries; i++) {
    const struct blob_entry *entry = &blob->entries[i];
    if (key_is(entry->key, BLOB_IMPORT_TREE)) {
      if (nodes->tree == NULL) nodes->tree = entry;
      continue;
    }
    nodes->entries[nodes->count++] = entry;
    if (!key_is(entry->key, BLOB_LIB)) continue;
    if (nodes->first_library == NULL) nodes->first_library = entry;
    else if (nodes->second_library == NULL) nodes->second_library = entry;
  }
}

static int refuse_imports(void *context, size_t parent, size_t child) {
  const struct nodes *nodes = context;
  const struct blob_loader *loader = nodes->parser->loader;
  const struct blob_entry *entry = nodes->entries[parent];
  (void)child;
  if (entry->module == NULL || !loader->carries_imports(loader->context, entry->module)) return 0;
  return reader_fail(nodes->parser->reader, entry->offset, "'%.*s' with imports, expected none",
                     (int)entry->key.size, entry->key.data);
}

static int check_nodes(struct nodes *nodes) {
  const struct reader *reader = nodes->parser->reader;
  const struct blob *blob = nodes->parser->blob;
  sort_entries(blob, nodes);
  if (!blob->has_tree)
    return nodes->first_library == NULL
               ? 0
               : reader_fail(reader, nodes->first_library->offset,
                             "'_lib' without an '_import_tree', expected both");
  if (nodes->second_library != NULL)
    return reader_fail(reader, nodes->second_library->offset,
                       "a second '_lib', expected one at most");
  if (tree_check(reader, blob, nodes->count, nodes->tree != NULL ? nodes->tree->offset : 0) != 0)
    return -1;
  if (nodes->parser->loader->carries_imports == NULL) return 0;
  return blob_visit_imports(blob, refuse_imports, nodes);
}

static int check_entries(const struct parser *parser) {
  struct nodes nodes = {.parser = parser};
  nodes.entries = heap_new((parser->blob->num_entries + 1) * sizeof *nodes.entries);
  if (nodes.entries == NULL) return no_memory();
  int status = check_nodes(&nodes);
  free(nodes.entries);
  return status;
}

/* ---- The blob */

static int parse(struct parser *parser) {
  struct reader *reader = parser->reader;
  int is_sized = parser->blob->dialect == DIALECT_TVM_FFI;
  if ((is_sized ? read_sized(parser) : read_unsized(parser)) != 0) return -1;
  if (reader_remaining(reader) > 0)
    return reader_fail(reader, reader->offset,
                       "%zu bytes after the last of %zu entries, expected none",
                       reader_remaining(reader), parser->blob->num_entries);
  return check_entries(parser);
}

int blob_parse(struct reader *reader, const struct blob_loader *loader, struct span manifest,
               struct blob *blob) {
  struct parser parser = {
      .reader = reader, .loader = loader, .blob = blob, .manifest_text = manifest};
  *blob = (struct blob){.dialect = reader->dialect};
  int status = parse(&parser);
  manifest_clear(&parser.manifest);
  if (status != 0) blob_clear(blob);
  return status;
}

void blob_clear(struct blob *blob) {
  for (size_t i = 0; i < blob->num_entries; i++)
    if (blob->entries[i].module != NULL) object_release(blob->entries[i].module);
  free(blob->entries);
  free(blob->row_ptr);
  free(blob->child_indices);
  *blob = (struct blob){.dialect = blob->dialect};
}

static uint64_t number_of(const uint8_t *bytes, int is_big) {
  uint64_t number = 0;
  for (int i = 0; i < HEADER_NBYTES; i++)
    number = number << 8 | bytes[is_big ? i : HEADER_NBYTES - 1 - i];
  return number;
}

int blob_skip_header(struct reader *reader) {
  const uint8_t *header;
  size_t size = reader_remaining(reader), expected = size - HEADER_NBYTES;
  if (size < HEADER_NBYTES)
    return reader_fail(reader, reader->offset, "a symbol of %zu bytes, expected at least %d", size,
                       HEADER_NBYTES);
  if (reader_raw(reader, HEADER_NBYTES, "bytes", &header) != 0) return -1;
  uint64_t found = number_of(header, 0);
  if (number_of(header, 1) == expected && found != expected)
    return reader_fail(reader, 0,
                       "nbytes is big-endian, expected little-endian; pack it for this machine");
  if (found != expected)
    return reader_fail(reader, 0, "nbytes is %llu, expected %zu (symbol size - 8)",
                       (unsigned long long)found, expected);
  /* Offsets count from the end of the header. */
  reader->bytes += reader->offset;
  reader->end -= reader->offset;
  reader->offset = 0;
  return 0;
}
