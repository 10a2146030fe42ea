/* Python as the host of the core (abi/host.h). */
#ifndef DSO_PACKER_PYTHON_HOST_H
#define DSO_PACKER_PYTHON_HOST_H

/* Fill the core's table `host` with functions that use the interpreter. */
void host_fill(void);

#endif
