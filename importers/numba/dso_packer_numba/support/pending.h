/* pending.h: exceptions of kernels, which cannot return them.
 *
 * A kernel of a parallel loop or of a NumPy function notes its exception; the wrapper of the
 * function that the caller called raises it (nb_raise_pending of call.h). Numba itself prints it and goes on. */
#ifndef DSO_PACKER_NUMBA_NOTED_H
#define DSO_PACKER_NUMBA_NOTED_H

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

struct nb_error;

/* Note an exception of this thread, unless it has one. */
void nb_note(const struct nb_error *error);

/* Replace the pending exception, and return it; NULL if there is none. */
const struct nb_error *nb_pending_replace(const struct nb_error *error);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

#endif
