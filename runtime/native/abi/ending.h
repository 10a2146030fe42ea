/* Freeing nested objects without recursion. */
#pragma once

/* Objects can be nested to any depth, so freeing them must not recurse. If an object must be freed
 * while another one is being freed in the same thread, it waits in a list until that has ended. */
struct ending {
  struct ending *next;
  void (*end)(struct ending *self);
};
void end_in_turn(struct ending *self, void (*end)(struct ending *self));
