/* Pools of workspace memory, one per thread and device. */
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

struct pool {
  struct pool *next;
  DLDevice device;
  const struct device_api *api;
  struct block *used; /* newest first: host code frees in reverse order */
  struct block *idle;
};

static _Thread_local struct pool *pools;

/* ---- The end of a thread */

static pthread_key_t pools_key;
static pthread_once_t pools_key_once = PTHREAD_ONCE_INIT;

static void free_blocks(const struct pool *pool, struct block *block) {
  while (block != NULL) {
    struct block *next = block->next;
    (void)pool->api->free(pool->device.device_id, block->data);
    free(block);
    block = next;
  }
}

static void free_pools(void *first) {
  pools = NULL;
  for (struct pool *pool = first, *next; pool != NULL; pool = next) {
    next = pool->next;
    free_blocks(pool, pool->used);
    free_blocks(pool, pool->idle);
    free(pool);
  }
}

static void make_pools_key(void) {
  pin_core(); /* threads may end after a dlclose of the core */
  (void)pthread_key_create(&pools_key, free_pools);
}

/* ---- Pools */

static struct pool *find_pool(DLDevice device) {
  struct pool *pool = pools;
  while (pool != NULL && (pool->device.device_type != device.device_type ||
                          pool->device.device_id != device.device_id))
    pool = pool->next;
  return pool;
}

static struct pool *add_pool(DLDevice device) {
  const struct device_api *api = device_api(device.device_type);
  if (api == NULL) return NULL;
  struct pool *pool = heap_new_zeroed(1, sizeof *pool);
  if (pool == NULL) {
    device_error(device, 0, "no memory for a pool of workspaces");
    return NULL;
  }
  *pool = (struct pool){.next = pools, .device = device, .api = api};
  pools = pool;
  pthread_once(&pools_key_once, make_pools_key);
  (void)pthread_setspecific(pools_key, pools);
  return pool;
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
static struct block *take_idle(struct pool *pool, size_t nbytes) {
  struct block **best = NULL;
  for (struct block **link = &pool->idle; *link != NULL; link = &(*link)->next)
    if ((*link)->nbytes >= nbytes && (best == NULL || (*link)->nbytes < (*best)->nbytes))
      best = link;
  return best != NULL ? unlink_block(best) : NULL;
}

/* If no idle block was large enough, free the one that was freed last. Otherwise a workspace that
 * grows with each call would leave a block of each size in the pool. */
static void drop_outgrown(struct pool *pool) {
  if (pool->idle == NULL) return;
  struct block *block = unlink_block(&pool->idle);
  block->next = NULL;
  free_blocks(pool, block);
}

static struct block *make_block(struct pool *pool, uint64_t nbytes) {
  struct block *block = heap_new(sizeof *block);
  if (block == NULL || nbytes > PTRDIFF_MAX - GRAIN) {
    free(block);
    device_error(pool->device, 0, "no memory for a workspace of %llu bytes",
                 (unsigned long long)nbytes);
    return NULL;
  }
  drop_outgrown(pool);
  block->nbytes = ((size_t)nbytes + GRAIN - 1) & ~(size_t)(GRAIN - 1);
  if (pool->api->alloc(pool->device.device_id, block->nbytes, ALIGNMENT, &block->data) == 0)
    return block;
  free(block);
  return NULL;
}

void *workspace_alloc(int device_type, int device_id, uint64_t nbytes, int code, int bits) {
  (void)code, (void)bits;
  DLDevice device = {.device_type = device_type, .device_id = device_id};
  struct pool *pool = find_pool(device);
  if (pool == NULL && (pool = add_pool(device)) == NULL) return NULL;
  struct block *block = nbytes <= SIZE_MAX ? take_idle(pool, (size_t)nbytes) : NULL;
  if (block == NULL && (block = make_block(pool, nbytes)) == NULL) return NULL;
  push_block(&pool->used, block);
  return block->data;
}

int workspace_free(int device_type, int device_id, void *data) {
  DLDevice device = {.device_type = device_type, .device_id = device_id};
  struct pool *pool = find_pool(device);
  struct block **link = pool != NULL ? &pool->used : NULL;
  while (link != NULL && *link != NULL && (*link)->data != data) link = &(*link)->next;
  if (link == NULL || *link == NULL)
    return device_error(device, 0,
                        "%p is not a workspace of this thread; free each workspace once, in the "
                        "thread that allocated it",
                        data);
  push_block(&pool->idle, unlink_block(link));
  return 0;
}
