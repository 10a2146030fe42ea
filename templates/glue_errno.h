/* glue_errno.h: functions that report failures in errno. */
#ifndef DSO_PACKER_GLUE_ERRNO_H
#define DSO_PACKER_GLUE_ERRNO_H

#include "glue_message.h"

#include <errno.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "[Errno 2] No such file or directory", of which runtime makes the exception for that number. */
DSO_COLD static int dso_raise_errno(void) {
  int number = errno;
  dso_message message;
  message.length = 0;
  dso_say(&message, "[Errno %d] %s", number, strerror(number));
  return dso_raise("OSError", message.text);
}

#ifdef __cplusplus
}
#endif

#endif
