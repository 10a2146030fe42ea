/* dso_verify MODE model.so TRUSTED... loads what equals one of the trusted files, and prints what was
 * verified and what quarter(40) is. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dso.h"

enum { MAX_NBYTES = 1 << 20 };

struct file {
  const char *path;
  char *bytes;
  size_t nbytes;
};

static struct file trusted[8];
static int num_trusted, is_silent;
/* COPIED_FROM is copied to COPIED_TO when the file of this name is verified, or by the writer. */
static const char *copied_from, *copied_to, *copied_at;

static struct file read_file(const char *path) {
  struct file file = {path, malloc(MAX_NBYTES), 0};
  FILE *stream = fopen(path, "rb");
  if (!stream) exit(2);
  file.nbytes = fread(file.bytes, 1, MAX_NBYTES, stream);
  fclose(stream);
  return file;
}

static void write_file(const char *path, const struct file *file, size_t nbytes) {
  FILE *stream = fopen(path, "wb");
  if (!stream || fwrite(file->bytes, 1, nbytes, stream) != nbytes) exit(2);
  fclose(stream);
}

static void copy_file(const char *from, const char *to) {
  struct file file = read_file(from);
  write_file(to, &file, file.nbytes);
  free(file.bytes);
}

static int is_trusted(const void *bytes, size_t nbytes) {
  for (int i = 0; i < num_trusted; i++)
    if (trusted[i].nbytes == nbytes && memcmp(trusted[i].bytes, bytes, nbytes) == 0) return 1;
  return 0;
}

static const char *name_of(const char *path) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path ? path : "bytes";
}

static int verify(void *context, const char *path, const void *bytes, size_t nbytes) {
  int is_good = is_trusted(bytes, nbytes);
  if (context) printf("%s %s\n", (const char *)context, name_of(path));
  if (copied_at && strcmp(copied_at, name_of(path)) == 0) copy_file(copied_from, copied_to);
  if (is_good || is_silent) return is_good ? 0 : 1;
  return dso_set_error("ValueError", "not trusted");
}

static char word[] = "verify";
static dso_options options = {sizeof options, verify, word, 0, 0, 0, 0, 0, 0};

/* Print the result, or the error; release the module. */
static void show(dso_module *module) {
  dso_any result, argument = dso_int(40);
  if (module && dso_module_call(module, "quarter", &result, &argument, 1) == 0)
    printf("%d\n", (int)result.v_int64);
  else puts(dso_last_error());
  dso_module_release(module);
}

/* A file that is open without verification is not used. */
static void load_again(const char *path) {
  struct file file = read_file(path);
  dso_module *verified = dso_load(path, &options), *plain = dso_load(path, NULL);
  dso_module *again = dso_load_bytes(file.bytes, file.nbytes, &options);
  printf("%d %d\n", plain == verified, again == verified);
  dso_module_release(plain), dso_module_release(again);
  num_trusted = 1; /* another verification than that of the first load */
  show(dso_load(path, &options));
  show(verified);
  free(file.bytes);
}

/* A needed library that is open without verification is not used. */
static void load_beside(const char *path) {
  dso_module *plain = dso_load(path, NULL);
  show(dso_load(path, &options));
  dso_module_release(plain);
}

/* A program of an older dso.h: its struct ends after `verify_context`. */
static void load_old(const char *path) {
  size_t nbytes = offsetof(dso_options, devices);
  dso_options *old = malloc(nbytes);
  memcpy(old, &options, nbytes);
  old->size = nbytes;
  show(dso_load(path, old));
  free(old);
}

/* Let a system call fail; if `argument` is not 0, only with this second argument. */
static void deny(unsigned number, unsigned argument, unsigned code) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  if (!argument) filter[3] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0);
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) exit(2);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) exit(77);
}

/* Rewrite, cut and replace the file, while it is loaded. */
struct writer {
  const char *path, *other;
  int is_over;
};

static void *rewrite(void *argument) {
  struct writer *self = argument;
  struct file bad = read_file(copied_from);
  char next[4096];
  snprintf(next, sizeof next, "%s.next", self->path);
  for (int i = 0; !__atomic_load_n(&self->is_over, __ATOMIC_ACQUIRE); i++) {
    const struct file *file = i % 2 ? &bad : &trusted[0];
    if (i % 3 == 0) write_file(self->path, file, file->nbytes);
    else if (i % 7 == 0) write_file(self->path, file, file->nbytes / 2);
    else write_file(next, file, file->nbytes), rename(next, self->path);
  }
  free(bad.bytes);
  return NULL;
}

static void load_beside_writer(const char *path) {
  struct writer writer = {path, copied_from, 0};
  int rounds = atoi(getenv("ROUNDS")), loaded = 0, refused = 0, wrong = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, rewrite, &writer);
  options.verify_context = NULL;
  while (loaded < rounds || refused < rounds) {
    dso_any result, argument = dso_int(40);
    dso_module *module = dso_load(path, &options);
    if (module == NULL) refused++;
    else if (dso_module_call(module, "quarter", &result, &argument, 1) == 0)
      wrong += result.v_int64 != 10, loaded++;
    dso_module_release(module);
  }
  __atomic_store_n(&writer.is_over, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  printf("%d loaded, %d refused, %d wrong\n", loaded, refused, wrong);
}

int main(int argc, char **argv) {
  const char *mode = argv[1], *path = argv[2];
  for (int i = 3; i < argc; i++) trusted[num_trusted++] = read_file(argv[i]);
  copied_from = getenv("COPIED_FROM");
  copied_to = getenv("COPIED_TO"), copied_at = getenv("COPIED_AT");
  is_silent = strcmp(mode, "silent") == 0;
  if (strcmp(mode, "no memfd") == 0) deny(SYS_memfd_create, 0, ENOSYS);
  if (strcmp(mode, "no seals") == 0) deny(SYS_fcntl, F_ADD_SEALS, EINVAL);
  if (strcmp(mode, "again") == 0) load_again(path);
  else if (strcmp(mode, "beside") == 0) load_beside(path);
  else if (strcmp(mode, "old") == 0) load_old(path);
  else if (strcmp(mode, "writer") == 0) load_beside_writer(path);
  else show(dso_load(path, &options));
  while (num_trusted > 0) free(trusted[--num_trusted].bytes);
  return 0;
}
