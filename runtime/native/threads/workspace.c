/* Workspace memory, one per thread and device. */
#include "threads/workspace.h"

#include <pthread.h>
#include <stdlib.h>

#include "device/device_api.h"
#include "abi/heap.h"
#include "abi/pin.h"

/* Sizes are rounded up, so that a workspace which grows a little with each call is reused. */
enum { ALIGNMENT = 64, GRAIN = 4096 };

struct block {
  struct block *next;
  void *data;
  size_t nbytes;
};

struct workspace {
  struct workspace *next;
  DLDevice device;
  const struct device_api *api;
  struct block *used; /* newest first: host code frees in reverse order */
  struct block *idle;
};

static _Thread_local struct workspace *workspaces;

/* ---- The end of a thread */

static pthread_key_t workspaces_key;
static pthread_once_t workspaces_key_once = PTHREAD_ONCE_INIT;

static void free_blocks(const struct workspace *workspace, struct block *block) {
  while (block != NULL) {
    struct block *next = block->next;
    (void)workspace->api->free(workspace->device.device_id, block->data);
    free(block);
    block = next;
  }
}

static void free_workspaces(void *first) {
  workspaces = NULL;
  for (struct workspace *workspace = first, *next; workspace != NULL; workspace = next) {
    next = workspace->next;
    free_blocks(workspace, workspace->used);
    free_blocks(workspace, workspace->idle);
    free(workspace);
  }
}

static void make_workspaces_key(void) {
  pin_core(); /* threads may end after a dlclose of the core */
  (void)pthread_key_create(&workspaces_key, free_workspaces);
}

/* ---- Pools */

static struct workspace *find_workspace(DLDevice device) {
  struct workspace *workspace = workspaces;
  while (workspace != NULL && (workspace->device.device_type != device.device_type ||
                               workspace->device.device_id != device.device_id))
    workspace = workspace->next;
  return workspace;
}

static struct workspace *add_workspace(DLDevice device) {
  const struct device_api *api = device_api(device.device_type);
  if (api == NULL) return NULL;
  struct workspace *workspace = heap_new_zeroed(1, sizeof *workspace);
  if (workspace == NULL) {
    device_error(device, 0, "no memory for a list of workspaces");
    return NULL;
  }
  *workspace = (struct workspace){.next = workspaces, .device = device, .api = api};
  workspaces = workspace;
  pthread_once(&workspaces_key_once, make_workspaces_key);
  (void)pthread_setspecific(workspaces_key, workspaces);
  return workspace;
}

static struct block *unlink_block(struct block **link) {
  struct block *block = *link;
  *link = block->next;
  return block;
}

static void push_block(struct block **list, struct block *block) {
  block->next = *list;
  *list = block;
}

/* The smallest idle block that is large enough, or NULL. */
static struct block *take_idle(struct workspace *workspace, size_t nbytes) {
  struct block **best = NULL;
  for (struct block **link = &workspace->idle; *link != NULL; link = &(*link)->next)
    if ((*link)->nbytes >= nbytes && (best == NULL || (*link)->nbytes < (*best)->nbytes))
      best = link;
  return best != NULL ? unlink_block(best) : NULL;
}

/* If no idle block was large enough, free the one that was freed last. Otherwise a workspace that
 * grows with each call would leave a block of each size in the workspace. */
static void drop_outgrown(struct workspace *workspace) {
  if (workspace->idle == NULL) return;
  struct block *block = unlink_block(&workspace->idle);
  block->next = NULL;
  free_blocks(workspace, block);
}

static struct block *make_block(struct workspace *workspace, uint64_t nbytes) {
  struct block *block = heap_new(sizeof *block);
  if (block == NULL || nbytes > PTRDIFF_MAX - GRAIN) {
    free(block);
    device_error(workspace->device, 0, "no memory for a workspace of %llu bytes",
                 (unsigned long long)nbytes);
    return NULL;
  }
  drop_outgrown(workspace);
  block->nbytes = ((size_t)nbytes + GRAIN - 1) & ~(size_t)(GRAIN - 1);
  if (workspace->api->alloc(workspace->device.device_id, block->nbytes, ALIGNMENT, &block->data) ==
      0)
    return block;
  free(block);
  return NULL;
}

void *workspace_alloc(int device_type, int device_id, uint64_t nbytes, int code, int bits) {
  (void)code, (void)bits;
  DLDevice device = {.device_type = device_type, .device_id = device_id};
  struct workspace *workspace = find_workspace(device);
  if (workspace == NULL && (workspace = add_workspace(device)) == NULL) return NULL;
  struct block *block = nbytes <= SIZE_MAX ? take_idle(workspace, (size_t)nbytes) : NULL;
  if (block == NULL && (block = make_block(workspace, nbytes)) == NULL) return NULL;
  push_block(&workspace->used, block);
  return block->data;
}

int workspace_free(int device_type, int device_id, void *data) {
  DLDevice device = {.device_type = device_type, .device_id = device_id};
  struct workspace *workspace = find_workspace(device);
  struct block **link = workspace != NULL ? &workspace->used : NULL;
  while (link != NULL && *link != NULL && (*link)->data != data) link = &(*link)->next;
  if (link == NULL || *link == NULL)
    return device_error(device, 0,
                        "%p is not a workspace of this thread; free each workspace once, in the "
                        "thread that allocated it",
                        data);
  push_block(&workspace->idle, unlink_block(link));
  return 0;
}
