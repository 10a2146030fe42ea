/* The images in a CUDA module's code: PTX, a cubin, or a fatbin, which contains both. The bytes
 * determine the format, since TVM labels everything but PTX "cubin".
 *
 * The driver gets an address without a length, so all bounds are checked here first. */
#pragma once

#include <stddef.h>

enum cuda_image_kind { CUDA_PTX = 1, CUDA_CUBIN = 2 }; /* the numbers of a fatbin's entries */

struct cuda_image {
  enum cuda_image_kind kind;
  int capability;    /* 90 for sm_90 */
  char suffix;       /* 'a': this capability only; 'f': its family; or NUL */
  int is_compressed; /* in a fatbin: only the driver can read it */
  const unsigned char *data;
  size_t nbytes;
};

enum { CUDA_MAX_IMAGES = 128 };

struct cuda_images {
  int count;
  struct cuda_image images[CUDA_MAX_IMAGES];
  char wrong[160]; /* why the bytes are invalid, with an offset; set on failure only */
};

/* Find the images in the bytes. Returns 0, or -1 with `wrong` set. */
int cuda_images_read(const unsigned char *data, size_t nbytes, struct cuda_images *images);

/* The best image for a device, or NULL: a cubin of exactly its capability, else the nearest older
 * cubin of its major version, else the newest PTX that is not newer than the device. */
const struct cuda_image *cuda_images_best(const struct cuda_images *images, int capability);

/* List the images, as "cubin sm_80, cubin sm_90a, ptx sm_80", truncated to `nbytes`. */
void cuda_images_describe(const struct cuda_images *images, char *text, size_t nbytes);
