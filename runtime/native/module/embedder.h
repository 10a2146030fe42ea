/* The embedder's part of a program without Python: what the code of libraries looks up. */
#pragma once

#include "module/module.h"

struct context;

/* Fill the table of abi/embedder.h, once. Called before a library is opened. */
void embedder_install(void);

/* Let the code of a context call the imports of a module, which it refers to weakly. Returns 0, or
 * -1 with OutOfMemoryError raised. */
int embedder_bind(struct context *context, dso_module *module);

/* Called when the module ends, before it releases its library. */
void embedder_unbind(struct context *context, dso_module *module);

/* Release what threads that were calling it could not. Called by functions of dso.h; cheap if there
 * is nothing. */
void embedder_collect(void);
