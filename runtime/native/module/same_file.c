/* The bytes of a library file that is open already. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "module/file_origin.h"

/* Its change time decides: programs cannot set it. Private: before Linux 6.7 a file that is sealed against writes
 * has no shared mapping. */
void *file_origin_map(const struct file_origin *self, size_t *nbytes) {
  struct file_key key;
  int descriptor = open(self->descriptor >= 0 ? self->loaded.spelling : self->origin.path,
                        O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return NULL;
  void *bytes = MAP_FAILED;
  *nbytes = (size_t)self->loaded.key.size;
  if (file_key_of(descriptor, &key) == 0 && file_key_equal(&key, &self->loaded.key) &&
      (self->is_memory || key.ctime_ns == self->loaded.key.ctime_ns))
    bytes = mmap(NULL, *nbytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  return bytes != MAP_FAILED ? bytes : NULL;
}

int file_origin_has_bytes(const struct file_origin *self, const void *bytes, size_t nbytes) {
  size_t size;
  if (self->loaded.key.size != nbytes) return 0;
  void *own = file_origin_map(self, &size);
  if (own == NULL) return 0;
  int is_same = memcmp(own, bytes, nbytes) == 0;
  munmap(own, size);
  return is_same;
}
