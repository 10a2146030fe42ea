/* The loaders of type keys: libdso's loaders, and loaders that the program registered. */
#pragma once

#include "abi/text.h"
#include "blob/blob.h"
#include "module/module.h"

/* For blob_parse. */
extern const struct blob_loader loaders;

/* Append the known type keys, sorted: "_lib, *_json, c, ...". */
void loaders_list(struct text *text);

/* Register a type of the program. Returns 0, or -1 with ValueError if its key has a loader. */
int loaders_register(const dso_type *type);
