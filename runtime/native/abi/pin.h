/* Keeping the core mapped after dlclose. */
#ifndef DSO_PACKER_ABI_PIN_H
#define DSO_PACKER_ABI_PIN_H

/* Keep the core mapped from now on. Called before the core starts threads or registers destructors
 * that run when a thread ends. */
void pin_core(void);

#endif
