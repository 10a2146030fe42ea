/* Whom host code's look-ups ask: the module of its library, in Python.
 *
 * No Python.h: callers that have none only pass contexts. */
#ifndef DSO_PACKER_PYTHON_IMPORTS_H
#define DSO_PACKER_PYTHON_IMPORTS_H

struct _object; /* PyObject */
struct context;

/* Look a function up and remember it; borrowed (a dso_object), or NULL with the error raised. Any
 * thread; takes the GIL. */
void *imports_find(struct context *context, const char *name);

/* The context's code is gone: forget whom to ask. Any thread. */
void imports_forget(struct context *context);

/* ---- With the GIL held */

/* Ask this module, too, for as long as it is alive; 0, or -1 with an exception set. */
int imports_bind(struct context *context, struct _object *module);

/* Drop the functions that the context's code found; the code may still call what it remembers. */
void imports_retire(struct context *context);

/* For the garbage collector: visit the callables that nobody but the context keeps. */
int imports_traverse(const struct context *context, int (*visit)(struct _object *, void *),
                     void *arg);

#endif
