/* Loading a file or its bytes; a file that is in use gives its tree again. */
#include <stdlib.h>
#include <string.h>

#include "abi/raised.h"
#include "module/file_origin.h"
#include "module/embedder.h"
#include "module/resident.h"
#include "module/tree.h"
#include "module/verified.h"

/* ---- A tree that is in use */

static int are_same_devices(const struct load_options *a, const struct load_options *b) {
  if (a->devices == NULL || b->devices == NULL) return a->devices == b->devices;
  if (a->num_devices != b->num_devices) return 0;
  return memcmp(a->devices, b->devices, (size_t)a->num_devices * sizeof *a->devices) == 0;
}

/* `root` is owned by the caller, who gets it back, or NULL. */
static dso_module *use_again(dso_module *root, const struct load_options *options) {
  const struct file_origin *file = file_origin_of(root);
  int status = 0;
  if (!are_same_devices(&file->origin.options, options))
    status = raised_format("ValueError",
                           "%s: devices: the library is loaded already, with other devices allowed",
                           file->origin.path);
  if (status == 0 && options->verify != NULL) status = verify_needed(file, options);
  if (status == 0) return root;
  module_release(root);
  return NULL;
}

/* ---- A new one */

/* Two threads may open the same file at once: then the later one takes the tree of the other. */
static dso_module *build(struct file_origin *file, const struct load_options *options) {
  if (file == NULL) return NULL;
  const struct checksums *checksums = &file->loaded.checksums;
  dso_module *root = tree_build(&file->origin, checksums->has_blob ? &checksums->structure : NULL);
  dso_module *kept = root != NULL ? resident_add(&file->loaded.key, root) : NULL;
  if (root != NULL && kept != root) module_release(root);
  object_release(&file->origin.object);
  return kept != NULL && kept != root ? use_again(kept, options) : kept;
}

/* Of a path, or of bytes. Only what was verified before is used again: the pages of another file may
 * be changed while it runs. */
static dso_module *load_verified(const char *path, const void *bytes, size_t nbytes,
                                 const struct load_options *options) {
  struct copy *copy = copy_new(path, bytes, nbytes, options);
  if (copy == NULL) return NULL;
  dso_module *root = copy_resident(copy);
  root = root != NULL ? use_again(root, options) : build(copy_open(copy), options);
  copy_free(copy);
  return root;
}

static dso_module *load_file(const char *path, const struct load_options *options) {
  struct file_key key;
  dso_module *root = file_key_at(path, &key) == 0 ? resident_find(&key) : NULL;
  return root != NULL ? use_again(root, options) : build(file_origin_open(path, options), options);
}

dso_module *tree_load(const char *path, const struct load_options *options) {
  embedder_install();
  char *absolute = absolute_path(path);
  if (absolute == NULL) return NULL;
  dso_module *root = options->verify != NULL ? load_verified(absolute, NULL, 0, options)
                                             : load_file(absolute, options);
  free(absolute);
  return root;
}

/* ---- Bytes */

struct bytes {
  const void *data;
  size_t nbytes;
};

static int has_bytes(const dso_module *root, const void *context) {
  const struct bytes *bytes = context;
  return file_origin_has_bytes(file_origin_of(root), bytes->data, bytes->nbytes);
}

dso_module *tree_load_bytes(const void *bytes, size_t nbytes, const struct load_options *options) {
  struct bytes wanted = {bytes, nbytes};
  embedder_install();
  if (options->verify != NULL) return load_verified(NULL, bytes, nbytes, options);
  dso_module *root = resident_search(nbytes, has_bytes, &wanted);
  return root != NULL ? use_again(root, options)
                      : build(file_origin_open_bytes(bytes, nbytes, options), options);
}
