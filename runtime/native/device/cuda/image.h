/* What a CUDA module's code is: PTX, a cubin, or a fatbin, which is a list of both. The bytes say
 * which, since TVM labels whatever is not PTX "cubin". No Python.h, no driver.
 *
 * A driver is given an address and no length, so that all of this is checked before. */
#ifndef DSO_PACKER_DEVICE_CUDA_IMAGE_H
#define DSO_PACKER_DEVICE_CUDA_IMAGE_H

#include <stddef.h>

enum cuda_image_kind { CUDA_PTX = 1, CUDA_CUBIN = 2 }; /* as a fatbin's entries are numbered */

struct cuda_image {
  enum cuda_image_kind kind;
  int capability;    /* 90 of sm_90 */
  char suffix;       /* 'a': this capability alone; 'f': its family; or NUL */
  int is_compressed; /* within a fatbin: then only the driver can read it */
  const unsigned char *data;
  size_t nbytes;
};

enum { CUDA_MAX_IMAGES = 128 };

struct cuda_images {
  int count;
  struct cuda_image images[CUDA_MAX_IMAGES];
  char wrong[160]; /* why the bytes are none of these, with an offset; of no use otherwise */
};

/* Find out what the bytes hold; 0, or -1 with `wrong` set. */
int cuda_images_read(const unsigned char *data, size_t nbytes, struct cuda_images *images);

/* What fits a device best, or NULL: a cubin of its very capability, else the nearest older one of
 * its major version, else the youngest PTX that is not younger than it. */
const struct cuda_image *cuda_images_best(const struct cuda_images *images, int capability);

/* "cubin sm_80, cubin sm_90a, ptx sm_80", cut where it is too long. */
void cuda_images_describe(const struct cuda_images *images, char *text, size_t nbytes);

#endif
