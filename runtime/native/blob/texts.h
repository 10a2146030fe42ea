/* vector<string> of a payload. */
#pragma once

#include "blob/reader.h"

/* Begins as {0}. */
struct texts {
  size_t count;
  const char **items; /* each with a NUL after it; may contain NUL */
};

/* Copy all of a vector, in one block. Returns 0, or -1 with an error raised. */
int texts_read(struct reader *reader, struct texts *texts);

/* Read a vector, and drop it. */
int texts_skip(struct reader *reader);

void texts_clear(struct texts *texts);
