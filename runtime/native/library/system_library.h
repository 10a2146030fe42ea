/* The libraries of the system: those whose real path is in one of its folders, or in one of the
 * folders that the running program itself names (RPATH). */
#pragma once

#include <limits.h>

/* Store the real path of an open file. Return 1 if it is in a folder of the system, 0 if not, or
 * -1 with errno. */
int system_library_path(int descriptor, char path[PATH_MAX]);

/* The folders of LD_LIBRARY_PATH at the start of the process, which the loader searches for every
 * library, between colons, without the system's folders. Owned by the caller; NULL without memory.
 * musl does not tell its folders: the folders that the variable has now are taken. */
char *loader_folders(void);

/* Find a library by the name of DT_NEEDED in the loader's cache and in the system's folders, never
 * in folders of the environment. Return 1 with its real path, or 0. */
int system_library_find(const char *name, char path[PATH_MAX]);

/* The path of an open library in the loader's link map, which lives as long; or "". */
const char *open_library_name(void *handle);
