/* Why a file was not loaded; python/ raises it as LibraryLoadError. */
#pragma once

struct load_error {
  const char *reason; /* LibraryLoadError.reason, a stable word */
  int is_memory;      /* an allocation failed */
  char message[6144]; /* without the path; dlerror may name a path of 4096 bytes */
};

/* Fill *error with a printf format. Always returns -1. */
int load_error_set(struct load_error *error, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same if there is no memory. */
int load_error_memory(struct load_error *error);

/* The same with the text of dlerror() for `path`. */
int load_error_dlopen(struct load_error *error, const char *path);

/* The kind of the error in dso.h. */
const char *load_error_kind(const struct load_error *error);
