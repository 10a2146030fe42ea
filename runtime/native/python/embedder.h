/* Python as the embedder of the core (abi/embedder.h). */
#ifndef DSO_PACKER_PYTHON_EMBEDDER_H
#define DSO_PACKER_PYTHON_EMBEDDER_H

/* Fill the core's table `embedder` with functions that use the interpreter. */
void embedder_fill(void);

#endif
