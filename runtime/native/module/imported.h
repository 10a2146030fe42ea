/* Function objects that the code of a library gets for its imports.
 *
 * Code may keep such an object in a static variable for as long as it is mapped, but must not keep
 * the module of the function: that may view the library and would keep it open for ever. So the
 * object is a shell. When the last module of its context ends, it is retired: it drops its function,
 * and looks its name up again at each call. */
#pragma once

#include "abi/object.h"

struct context;
struct imported;

/* A shell around `function`. It retains both objects; `provider` so that no other provider gets
 * its address. NULL with OutOfMemoryError raised. */
dso_object *imported_new(struct context *context, const char *name, dso_object *function,
                         dso_object *provider);

/* Retire a shell, and add it to a list. The embedder's lock is held. */
void imported_retire(dso_object *shell, struct imported **list);

/* Drop the functions of a list of retired shells, except functions that a thread is calling: the
 * call queues its shell for imported_collect. */
void imported_drop_all(struct imported *list);
void imported_collect(void);
