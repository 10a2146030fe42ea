/* The objects of a thread that wait to be freed. */
#include "abi/ending.h"

#include <stddef.h>

static _Thread_local struct ending *waiting;
static _Thread_local int is_ending;

void end_in_turn(struct ending *self, void (*end)(struct ending *self)) {
  *self = (struct ending){waiting, end};
  waiting = self;
  if (is_ending) return;
  is_ending = 1;
  while (waiting != NULL) {
    self = waiting;
    waiting = self->next;
    self->end(self);
  }
  is_ending = 0;
}
