/* The core stays in memory. No Python.h. */
#ifndef DSO_PACKER_ABI_PIN_H
#define DSO_PACKER_ABI_PIN_H

/* From here on dlclose leaves the core mapped: threads of its own run in it, or it has destructors
 * that run as threads end. */
void pin_core(void);

#endif
