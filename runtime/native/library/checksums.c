/* Verification of __packer_checksums (docs/format.md, Checksums). */
#include "library/checksums.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "scan/crc32.h"

/* A list may name a symbol many times; MAX_NBYTES bounds the time that takes. */
enum { NUM_DIGITS = 8, MAX_NBYTES = 256 << 20 };

static const char *const FIRST_LINE = "packer-checksums 1";
static const char *const REMEDY = "the file is damaged: export it again, or copy it again";

/* The list, the library that it describes, and the results. */
struct list {
  const char *symbol;
  checksums_find find;
  const void *library;
  struct checksums *found;
  struct load_error *error;
  size_t *left; /* of MAX_NBYTES */
};

static int refuse_line(const struct list *list, const char *line) {
  return load_error_set(list->error, "malformed",
                        "%s: line '%.80s', expected blob, data or code, and a symbol; %s",
                        list->symbol, line, REMEDY);
}

static int refuse_lost(const struct list *list, const char *reason, const char *symbol) {
  return load_error_set(list->error, reason,
                        "symbol %.200s: expected as listed in %s, found none; %s", symbol,
                        list->symbol, REMEDY);
}

/* A newer writer changes the number. Any other difference is damage. */
static int refuse_first_line(const struct list *list, const char *line) {
  size_t prefix = strlen(FIRST_LINE) - 1;
  const char *remedy = strncmp(line, FIRST_LINE, prefix) == 0
                           ? "load it with the dso-packer that wrote it, or a newer one"
                           : REMEDY;
  return load_error_set(list->error, "malformed", "%s: first line '%.40s', expected '%s'; %s",
                        list->symbol, line, FIRST_LINE, remedy);
}

/* Read "<8 lower-case hexadecimal digits> ". Return the text after it, or NULL. */
static const char *read_crc(const char *text, uint32_t *crc) {
  *crc = 0;
  for (int i = 0; i < NUM_DIGITS; i++, text++) {
    uint32_t digit = (uint32_t)(*text >= 'a' ? *text - 'a' + 10 : *text - '0');
    if (digit > 15 || (digit > 9 && *text < 'a')) return NULL;
    *crc = *crc << 4 | digit;
  }
  return *text == ' ' ? text + 1 : NULL;
}

static int verify_data(const struct list *list, const char *symbol, uint32_t expected) {
  const uint8_t *bytes;
  size_t nbytes;
  if (!list->find(list->library, symbol, 0, &bytes, &nbytes))
    return refuse_lost(list, "malformed", symbol);
  if (nbytes > *list->left)
    return load_error_set(list->error, "malformed",
                          "%s: listed data, expected at most %d bytes; %s", list->symbol,
                          MAX_NBYTES, REMEDY);
  *list->left -= nbytes;
  uint32_t crc = crc32_of(bytes, nbytes);
  if (crc == expected) return 0;
  return load_error_set(list->error, "malformed",
                        "symbol %.200s: CRC-32, expected %08" PRIx32 " as listed in %s, found "
                        "%08" PRIx32 "; %s",
                        symbol, expected, list->symbol, crc, REMEDY);
}

static int verify_blob(const struct list *list, const char *symbol, uint32_t structure) {
  const uint8_t *bytes;
  size_t nbytes;
  if (!list->find(list->library, symbol, 0, &bytes, &nbytes))
    return refuse_lost(list, "blob", symbol);
  list->found->has_blob = 1;
  list->found->structure = structure;
  return 0;
}

static int verify_line(const struct list *list, const char *line) {
  int is_blob = strncmp(line, "blob ", 5) == 0, is_data = strncmp(line, "data ", 5) == 0;
  if (strncmp(line, "code ", 5) == 0)
    return list->find(list->library, line + 5, 1, NULL, NULL)
               ? 0
               : refuse_lost(list, "malformed", line + 5);
  uint32_t crc;
  const char *symbol = is_blob || is_data ? read_crc(line + 5, &crc) : NULL;
  if (symbol == NULL || (is_blob && list->found->has_blob)) return refuse_line(list, line);
  return is_blob ? verify_blob(list, symbol, crc) : verify_data(list, symbol, crc);
}

/* Each line ends in a line break, which is replaced by a NUL. */
static int verify_lines(const struct list *list, char *text) {
  char *line = text, *end = strchr(line, '\n');
  if (end != NULL) *end = '\0';
  if (strcmp(line, FIRST_LINE) != 0) return refuse_first_line(list, line);
  while (end != NULL && *(line = end + 1) != '\0') {
    end = strchr(line, '\n');
    if (end == NULL) return refuse_line(list, line);
    *end = '\0';
    if (verify_line(list, line) != 0) return -1;
  }
  return 0;
}

/* Writers store a manifest only beside a blob. Version 0.1.0 wrote no list. */
static int verify_without_list(const struct list *list) {
  const uint8_t *bytes;
  size_t nbytes;
  int has_manifest = list->find(list->library, "__packer_manifest", 0, &bytes, &nbytes);
  if (!has_manifest || list->find(list->library, "__tvm_dev_mblob", 0, &bytes, &nbytes) ||
      list->find(list->library, "__tvm_ffi__library_bin", 0, &bytes, &nbytes))
    return 0;
  return load_error_set(list->error, "blob",
                        "__packer_manifest: expected a blob beside it (__tvm_dev_mblob or "
                        "__tvm_ffi__library_bin), found none; %s",
                        REMEDY);
}

/* Replace control characters, which a terminal would obey, in quotes from a damaged file. */
static int without_controls(struct load_error *error) {
  for (char *c = error->message; *c != '\0'; c++)
    if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
  return -1;
}

int checksums_verify(const char *symbol, checksums_find find, const void *library,
                     struct checksums *checksums, struct load_error *error) {
  const uint8_t *bytes;
  size_t nbytes, left = MAX_NBYTES;
  const struct list list = {symbol, find, library, checksums, error, &left};
  *checksums = (struct checksums){.has_blob = 0};
  if (!find(library, symbol, 0, &bytes, &nbytes)) return verify_without_list(&list);
  if (memchr(bytes, '\0', nbytes) != bytes + nbytes - 1)
    return load_error_set(error, "malformed", "%s: expected text that ends with its only NUL; %s",
                          symbol, REMEDY);
  char *text = heap_new(nbytes);
  if (text == NULL) return load_error_memory(error);
  memcpy(text, bytes, nbytes);
  int status = verify_lines(&list, text);
  free(text);
  return status == 0 ? 0 : without_controls(error);
}
