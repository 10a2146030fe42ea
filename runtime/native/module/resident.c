/* The list of roots of files in use. */
#include "module/resident.h"

#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/embedder_lock.h"

struct resident {
  struct resident *next;
  struct file_key key;
  dso_module *root; /* weak: it removes itself when it ends */
};

static struct resident *residents;

static dso_module *find(const struct file_key *key) {
  for (struct resident *at = residents; at != NULL; at = at->next)
    if (file_key_equal(&at->key, key) && module_try_retain(at->root)) return at->root;
  return NULL;
}

dso_module *resident_find(const struct file_key *key) {
  embedder_lock();
  dso_module *root = find(key);
  embedder_unlock();
  return root;
}

dso_module *resident_add(const struct file_key *key, dso_module *root) {
  struct resident *added = heap_new(sizeof *added);
  if (added == NULL) return raised_null("OutOfMemoryError", "no memory for a loaded library");
  embedder_lock();
  dso_module *other = find(key);
  if (other == NULL) {
    *added = (struct resident){residents, *key, root};
    residents = added;
    root->is_resident = 1;
  }
  embedder_unlock();
  if (other == NULL) return root;
  free(added);
  return other;
}

/* Store the n-th root of a file of this size, owned by the caller; NULL if it is ending. Returns
 * false after the last. */
static int take_nth(size_t nbytes, size_t n, dso_module **root) {
  *root = NULL;
  embedder_lock();
  struct resident *at = residents;
  for (; at != NULL; at = at->next)
    if (at->key.size == nbytes && n-- == 0) break;
  if (at != NULL && module_try_retain(at->root)) *root = at->root;
  embedder_unlock();
  return at != NULL;
}

/* Without the lock while bytes are compared: the list may change meanwhile, so a file may be
 * missed, and is loaded once more. */
dso_module *resident_search(size_t nbytes,
                            int (*is_wanted)(const dso_module *root, const void *context),
                            const void *context) {
  dso_module *root;
  for (size_t n = 0; take_nth(nbytes, n, &root); n++) {
    if (root == NULL) continue;
    if (is_wanted(root, context)) return root;
    module_release(root);
  }
  return NULL;
}

void resident_forget(dso_module *root) {
  embedder_lock();
  struct resident **link = &residents;
  while ((*link)->root != root) link = &(*link)->next;
  struct resident *gone = *link;
  *link = gone->next;
  embedder_unlock();
  free(gone);
}
