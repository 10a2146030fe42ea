/* Keeping the core mapped after dlclose. */
#pragma once

/* Keep the core mapped from now on. Called before the core starts threads or registers destructors
 * that run when a thread ends. */
void pin_core(void);
