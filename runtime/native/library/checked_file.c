/* Opening, mapping and checking a file without running its code. */
#define _DEFAULT_SOURCE /* O_CLOEXEC, st_mtim */
#include "library/checked_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_error(struct load_error *error, const char *action, int code) {
  return load_error_set(error, "io", "cannot %s: %s", action, strerror(code));
}

static const char *kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a FIFO";
    case S_IFSOCK: return "a socket";
    case S_IFCHR: return "a character device";
    case S_IFBLK: return "a block device";
    default: return "something else";
  }
}

static int not_a_file(struct load_error *error, mode_t mode) {
  return load_error_set(error, "not-a-file", "not a regular file, found %s", kind_of(mode));
}

static struct file_key key_of(const struct stat *status) {
  struct file_key key;
  key.device = (uint64_t)status->st_dev;
  key.inode = (uint64_t)status->st_ino;
  key.size = (uint64_t)status->st_size;
  key.mtime_ns = (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
  key.ctime_ns = (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
  return key;
}

int file_key_at(const char *path, struct file_key *key) {
  struct stat status;
  if (stat(path, &status) != 0) return -1;
  *key = key_of(&status);
  return 0;
}

int file_key_of(int descriptor, struct file_key *key) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  *key = key_of(&status);
  return 0;
}

int file_key_equal(const struct file_key *a, const struct file_key *b) {
  return a->device == b->device && a->inode == b->inode && a->size == b->size &&
         a->mtime_ns == b->mtime_ns;
}

/* O_NONBLOCK: a FIFO without a writer would block. O_NOCTTY: a terminal must not become the
 * controlling terminal. */
static int open_to_read(const char *path, struct load_error *error) {
  struct stat status;
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  while (fd < 0 && errno == EINTR);
  if (fd >= 0) return fd;
  int code = errno;
  /* opening a socket gives ENXIO, "no such device"; report the kind of file instead */
  if (code == ENXIO && stat(path, &status) == 0) return not_a_file(error, status.st_mode);
  return io_error(error, "open", code);
}

int regular_file_key(int fd, struct file_key *key, struct load_error *error) {
  struct stat status;
  if (fstat(fd, &status) != 0) return io_error(error, "read the status", errno);
  if (!S_ISREG(status.st_mode)) return not_a_file(error, status.st_mode);
  *key = key_of(&status);
  return 0;
}

int regular_file_open(const char *path, struct file_key *key, struct load_error *error) {
  int fd = open_to_read(path, error);
  if (fd < 0 || regular_file_key(fd, key, error) == 0) return fd;
  close(fd);
  return -1;
}

int checked_file_map(int fd, struct checked_file *file, struct load_error *error) {
  file->nbytes = (size_t)file->key.size;
  file->bytes = (const uint8_t *)""; /* mmap refuses 0 bytes, and the check reads none */
  if (file->nbytes == 0) return 0;
  void *bytes = mmap(NULL, file->nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return io_error(error, "map", errno);
  file->bytes = bytes;
  return 0;
}

/* After "link it first with packer link": the rest of the command, if no shell needs quotes. */
static const char *rest_of_command(const char *message, const char *path) {
  static const char end[] = "packer link";
  size_t length = strlen(message);
  int is_advice = length >= sizeof end && strcmp(message + length - sizeof end + 1, end) == 0;
  return is_advice && strpbrk(path, " \t\n'\"\\$`&;|<>()*?[]#~!{}") == NULL ? path : NULL;
}

/* The machine that the ELF header names: its field is at the same place in every class. */
static uint16_t own_machine(const struct checked_file *file) {
  enum { E_MACHINE = 18 };
  if (file->nbytes < E_MACHINE + 2) return elf_native_machine();
  return (uint16_t)(file->bytes[E_MACHINE] | file->bytes[E_MACHINE + 1] << 8);
}

int checked_file_check(const char *path, uint16_t machine, struct checked_file *file,
                       struct load_error *error) {
  if (machine == ANY_MACHINE) machine = own_machine(file);
  static const char *const reasons[] = {[ELF_OK] = "",
                                        [ELF_NOT_ELF] = "not-elf",
                                        [ELF_TRUNCATED] = "truncated",
                                        [ELF_MACHINE] = "machine",
                                        [ELF_FORMAT] = "format",
                                        [ELF_MALFORMED] = "malformed",
                                        [ELF_POLICY] = "policy"};
  struct elf_error found = {.reason = ELF_OK};
  if (elf_check(file->bytes, file->nbytes, machine, &file->image, &found) == 0) return 0;
  const char *named = rest_of_command(found.message, path);
  if (named != NULL)
    return load_error_set(error, reasons[found.reason], "%s %s -o model.so", found.message, named);
  return load_error_set(error, reasons[found.reason], "%s", found.message);
}

int checked_file_open_with(const char *path, uint16_t machine, struct checked_file *file,
                           int *descriptor, struct load_error *error) {
  int fd = regular_file_open(path, &file->key, error);
  if (fd < 0) return -1;
  if (checked_file_map(fd, file, error) == 0) {
    *descriptor = fd;
    if (checked_file_check(path, machine, file, error) == 0) return 0;
    checked_file_close(file);
  }
  close(fd);
  return -1;
}

int checked_file_open(const char *path, uint16_t machine, struct checked_file *file,
                      struct load_error *error) {
  int descriptor;
  if (checked_file_open_with(path, machine, file, &descriptor, error) != 0) return -1;
  close(descriptor); /* the map remains */
  return 0;
}

void checked_file_close(struct checked_file *file) {
  if (file->nbytes > 0) munmap((void *)(uintptr_t)file->bytes, file->nbytes);
  file->nbytes = 0;
}

int checked_file_find(const void *file, const char *symbol, int is_code, const uint8_t **bytes,
                      size_t *nbytes) {
  const struct checked_file *self = file;
  struct elf_symbol found;
  if (!elf_lookup(&self->image, elf_at_file, self->bytes, symbol, &found)) return 0;
  if (is_code) return elf_not_code(&self->image, &found) == NULL;
  *bytes = elf_at_file(self->bytes, &self->image, found.value);
  *nbytes = (size_t)found.size;
  return elf_not_data(&self->image, &found) == NULL;
}
