/* The check of __packer_cpu_levels (docs/format.md, CPU levels). The dispatcher of the library
 * chooses the level itself, with the same header. */
#include "library/cpu_levels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso_cpu.h"

static const char *const SYMBOL = "__packer_cpu_levels";
static const char *const FIRST_LINE = "packer-cpu 1\n";
static const char *const REMEDY = "the file is damaged: export it again, or copy it again";

/* ---- This processor */

struct feature {
  const char *name;
  uint64_t bit;
};

#define ROW(name, word, bit) {#name, DSO_CPU_BIT(name)},
static const struct feature features[] = {DSO_CPU_FEATURES(ROW)};

/* CPUID is slow in a virtual machine, so it is asked once. */
static uint64_t found_features;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_features(void) { found_features = dso_cpu_features(); }

static int has_feature(const char *name, size_t length) {
  pthread_once(&once, find_features);
  for (size_t i = 0; i < DSO_CPU_NUM_FEATURES; i++)
    if (strncmp(features[i].name, name, length) == 0 && features[i].name[length] == '\0')
      return (found_features & features[i].bit) != 0;
  return 0; /* of a newer writer */
}

/* True for lines of text, which have no control characters, and a NUL at the end. */
static int is_text(const uint8_t *bytes, size_t nbytes) {
  if (nbytes < 2 || bytes[nbytes - 1] != '\0' || bytes[nbytes - 2] != '\n') return 0;
  for (size_t i = 0; i + 1 < nbytes; i++)
    if ((bytes[i] < ' ' && bytes[i] != '\n') || bytes[i] == 0x7f) return 0;
  return 1;
}

/* ---- The text. A word ends at a space, and a line at a line break */

/* Return the text after `word` and its space if `text` begins with it, else NULL. */
static const char *after(const char *text, const char *word, size_t length) {
  if (strncmp(text, word, length) != 0) return NULL;
  return text[length] == ' ' ? text + length + 1 : text[length] == '\n' ? text + length : NULL;
}

static size_t word_length(const char *text) { return strcspn(text, " \n"); }

/* Return the value of the next line with this key, or NULL. */
static const char *next_line(const char *text, const char *key) {
  const char *value = NULL;
  for (; text != NULL && value == NULL; text = strchr(text, '\n'))
    value = after(text += *text == '\n', key, strlen(key));
  return value;
}

/* Return the features of a level, or NULL. */
static const char *features_of(const char *text, const char *level, size_t length) {
  const char *value = NULL;
  while (value == NULL && (text = next_line(text, "features")) != NULL)
    value = after(text, level, length);
  return value;
}

/* Copy the first feature that this processor lacks. Returns 0 if it has all. */
static int find_lacking(const char *listed, char *lacking, size_t size) {
  while (*listed != '\n') {
    size_t length = word_length(listed);
    if (length > 0 && !has_feature(listed, length)) {
      snprintf(lacking, size, "%.*s", (int)(length < 32 ? length : 32), listed);
      return 1;
    }
    listed += length + (listed[length] == ' ');
  }
  return 0;
}

/* ---- The levels */

struct levels {
  const char *text, *names; /* the value of the line "levels" */
  struct load_error *error;
};

static int refuse(const struct levels *self, const char *found) {
  return load_error_set(self->error, "malformed", "%s: expected %s, %s", SYMBOL, found, REMEDY);
}

/* Return the name of `level` in the list, or NULL. */
static const char *find_level(const struct levels *self, const char *level) {
  const char *name = self->names;
  size_t wanted = strlen(level);
  while (*name != '\n') {
    size_t length = word_length(name);
    if (length == wanted && strncmp(name, level, length) == 0) return name;
    name += length + (name[length] == ' ');
  }
  return NULL;
}

/* A library of one level is refused by the same words. */
static int check_level(const struct levels *self, const char *name, const char *origin,
                       const char *remedy) {
  char lacking[40];
  int length = (int)word_length(name);
  const char *listed = features_of(self->text, name, (size_t)length);
  if (listed == NULL) return refuse(self, "the features of each level");
  if (!find_lacking(listed, lacking, sizeof lacking)) return 0;
  return load_error_set(self->error, "cpu",
                        "%s%.*s, expected a processor with %s, found one without; %s", origin,
                        length, name, lacking, remedy);
}

static int check_forced(const struct levels *self, const char *forced) {
  const char *name = find_level(self, forced);
  if (name != NULL)
    return check_level(self, name, "DSO_CPU=", "choose a lower level, or unset DSO_CPU");
  return load_error_set(self->error, "cpu",
                        "DSO_CPU=%.40s, expected a level of the library: %.*s; choose one, or "
                        "unset DSO_CPU",
                        forced, (int)strcspn(self->names, "\n"), self->names);
}

int cpu_levels_check(checksums_find find, const void *library, struct load_error *error) {
  const uint8_t *bytes;
  size_t nbytes;
  if (!find(library, SYMBOL, 0, &bytes, &nbytes)) return 0;
  struct levels self = {.text = (const char *)bytes, .error = error};
  if (!is_text(bytes, nbytes)) return refuse(&self, "lines of text that a NUL ends");
  if (strncmp(self.text, FIRST_LINE, strlen(FIRST_LINE)) != 0)
    return load_error_set(error, "malformed",
                          "%s: another first line, expected 'packer-cpu 1'; load it with the "
                          "dso-packer that wrote it, or a newer one",
                          SYMBOL);
  self.names = next_line(self.text, "levels");
  if (self.names == NULL || *self.names == '\n') return refuse(&self, "the names of levels");
  const char *forced = getenv("DSO_CPU");
  if (forced != NULL && *forced != '\0') return check_forced(&self, forced);
  return check_level(&self, self.names, "compiled for ",
                     "export it with a lower level (cpu=), or run it on such a processor");
}
