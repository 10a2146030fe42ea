/* Why a file was not loaded: what the parts without Python.h hand to the parts with it. */
#ifndef DSO_PACKER_LIBRARY_LOAD_ERROR_H
#define DSO_PACKER_LIBRARY_LOAD_ERROR_H

struct load_error {
  const char *reason; /* LibraryLoadError.reason, one stable word */
  char message[6144]; /* without the path; dlerror may name a path of 4096 bytes */
};

/* Fill *error in the manner of printf and return -1. */
int load_error_set(struct load_error *error, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with what dlerror says about `path`. */
int load_error_dlopen(struct load_error *error, const char *path);

#endif
