/* LD_PRELOAD: in Python the FAULT_AT-th of these calls fails with FAULT_ERRNO. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int calls;

static int is_due(const char *name)
{
    const char *at = getenv("FAULT_AT");

    if (at == NULL || strncmp(program_invocation_short_name, "python", 6) != 0)
        return 0;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != atoi(at))
        return 0;
    fprintf(stderr, "fault in %s\n", name);
    errno = atoi(getenv("FAULT_ERRNO"));
    return 1;
}

#define STAND_IN(result, name, parameters, ...)                     \
    result name parameters                                          \
    {                                                               \
        result(*real) parameters;                                   \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                  \
        return is_due(#name) ? -1 : real(__VA_ARGS__);              \
    }

STAND_IN(ssize_t, write, (int f, const void *d, size_t n), f, d, n)
STAND_IN(ssize_t, pwrite, (int f, const void *d, size_t n, off_t o), f, d, n, o)
STAND_IN(ssize_t, pwrite64, (int f, const void *d, size_t n, off_t o), f, d, n, o)
STAND_IN(ssize_t, pread, (int f, void *d, size_t n, off_t o), f, d, n, o)
STAND_IN(ssize_t, pread64, (int f, void *d, size_t n, off_t o), f, d, n, o)
STAND_IN(ssize_t, copy_file_range, (int f, off_t *a, int t, off_t *b, size_t n, unsigned g), f, a, t, b, n, g)
STAND_IN(int, fallocate64, (int f, int m, off_t o, off_t n), f, m, o, n)
STAND_IN(int, ftruncate, (int f, off_t n), f, n)
STAND_IN(int, ftruncate64, (int f, off_t n), f, n)
STAND_IN(int, fsync, (int f), f)
STAND_IN(int, fchmod, (int f, unsigned m), f, m)
STAND_IN(int, rename, (const char *a, const char *b), a, b)
