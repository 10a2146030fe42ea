/* parallel.h: parallel loops of Numba on the threads of the loader. */
#ifndef DSO_PACKER_NUMBA_PARALLEL_H
#define DSO_PACKER_NUMBA_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

/* A loop of a NumPy generalised function: dims[0] items, each array with its step in bytes. */
typedef void (*nb_kernel)(char **args, const int64_t *dims, const int64_t *steps, void *data);

/* Run the kernel on parts of the items, one for each thread: the first parts are longer by one
 * item. dims has inner_ndim + 1 numbers, args and the first steps have num_arrays. In a kernel the
 * loop runs in its thread. */
void numba_parallel_for(nb_kernel kernel, char **args, const int64_t *dims, const int64_t *steps,
                        void *data, int64_t inner_ndim, int64_t num_arrays, int64_t num_threads);

/* The threads of the loops that this thread begins; at first NUMBA_NUM_THREADS, TVM_NUM_THREADS,
 * OMP_NUM_THREADS or the number of processors. */
int64_t get_num_threads(void);
void set_num_threads(int64_t count);

/* The number of the part that this thread runs; 0 outside of loops, and in a loop of a loop. */
int64_t get_thread_id(void);

/* Iterations of a chunk of the loops that this thread begins, 0 for one chunk per thread; the first
 * returns the number before. */
uint64_t set_parallel_chunksize(uint64_t size);
uint64_t get_parallel_chunksize(void);

/* The number of parts for num_threads threads, from the first and last iterations; memory for them,
 * of 2 * ndim words each; the first and last iterations of each part. */
uint64_t get_sched_size(uint64_t num_threads, uint64_t ndim, const int64_t *starts,
                        const int64_t *ends);
void *allocate_sched(uint64_t words);
void deallocate_sched(void *schedule);
void do_scheduling_signed(uint64_t ndim, const int64_t *starts, const int64_t *ends, uint64_t parts,
                          int64_t *schedule, int64_t debug);
void do_scheduling_unsigned(uint64_t ndim, const int64_t *starts, const int64_t *ends,
                            uint64_t parts, int64_t *schedule, int64_t debug);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

#endif
