/* The lock of what the embedder keeps: contexts' modules, import caches, residents, registries.
 *
 * It is held for short steps only, never while code of a library or of the program runs, an object
 * is released, or a library is opened or closed. So it cannot be part of a deadlock. */
#pragma once

void embedder_lock(void);
void embedder_unlock(void);
