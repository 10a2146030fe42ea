/* Python as the embedder of the core (abi/embedder.h). */
#pragma once

/* Fill the core's table `embedder` with functions that use the interpreter. */
void embedder_fill(void);
