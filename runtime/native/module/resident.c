/* The list of roots of files in use. */
#include "module/resident.h"

#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/host_lock.h"

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
  host_lock();
  dso_module *root = find(key);
  host_unlock();
  return root;
}

dso_module *resident_add(const struct file_key *key, dso_module *root) {
  struct resident *added = heap_new(sizeof *added);
  if (added == NULL) {
    (void)raised_format("OutOfMemoryError", "no memory for a loaded library");
    return NULL;
  }
  host_lock();
  dso_module *other = find(key);
  if (other == NULL) {
    *added = (struct resident){residents, *key, root};
    residents = added;
    root->is_resident = 1;
  }
  host_unlock();
  if (other == NULL) return root;
  free(added);
  return other;
}

void resident_forget(dso_module *root) {
  host_lock();
  struct resident **link = &residents;
  while ((*link)->root != root) link = &(*link)->next;
  struct resident *gone = *link;
  *link = gone->next;
  host_unlock();
  free(gone);
}
