/* Files in memory that no process can change. */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS */
#include "library/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "library/checked_file.h"

void sealed_file_name(int descriptor, char name[SEALED_NAME]) {
  snprintf(name, SEALED_NAME, "/proc/self/fd/%d", descriptor);
}

/* Of `bytes`, or of the file `source` if that is not negative. Linux writes at most 2 GiB at a
 * time. A file that is cut meanwhile gives fewer bytes. */
static int write_all(int descriptor, int source, const char *bytes, size_t nbytes) {
  while (nbytes > 0) {
    ssize_t written =
        source < 0 ? write(descriptor, bytes, nbytes) : sendfile(descriptor, source, NULL, nbytes);
    if (written == 0) break;
    if (written < 0 && errno != EINTR) return -1;
    if (written < 0) continue;
    if (source < 0) bytes += written;
    nbytes -= (size_t)written;
  }
  return 0;
}

static int seal(int source, const void *bytes, size_t nbytes, struct load_error *error) {
  int descriptor = memfd_create("packer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor >= 0 && write_all(descriptor, source, bytes, nbytes) == 0 &&
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
    return descriptor;
  (void)load_error_set(error, "io", "cannot be loaded from a sealed file in memory: %s",
                       strerror(errno));
  if (descriptor >= 0) close(descriptor);
  return -1;
}

int sealed_file_of(const void *bytes, size_t nbytes, struct load_error *error) {
  return seal(-1, bytes, nbytes, error);
}

/* Store the folder of an open file. */
static int find_folder(int source, char *folder, struct load_error *error) {
  char name[SEALED_NAME];
  sealed_file_name(source, name);
  ssize_t length = readlink(name, folder, PATH_MAX - 1);
  if (length < 0) return load_error_set(error, "io", "cannot read %s: %s", name, strerror(errno));
  folder[length] = '\0';
  char *slash = strrchr(folder, '/');
  if (slash != NULL) slash[slash == folder] = '\0';
  return 0;
}

int sealed_file_copy(int source, size_t nbytes, char *folder, struct load_error *error) {
  if (find_folder(source, folder, error) != 0) return -1;
  return seal(source, NULL, nbytes, error);
}
