/* The device that host code selected for its thread by __tvm_set_device. */
#pragma once

#include "dso_abi.h"

/* The thread's current device of this type; index 0 until another was set. */
DLDevice current_device(int device_type);

/* Make it the thread's current device of its type. Types that DLPack does not define are
 * ignored. */
void set_current_device(DLDevice device);
