/* Signals during long runs of virtual machines. */
#ifndef DSO_PACKER_PYTHON_VM_POLL_H
#define DSO_PACKER_PYTHON_VM_POLL_H

/* Let runs of bytecode end with the exception that a signal's handler raises: Ctrl-C. */
void vm_poll_signals(void);

#endif
