/* How many bytes of data a safetensors header speaks of, without taking it apart. */
#ifndef DSO_PACKER_SCAN_WEIGHTS_HEADER_H
#define DSO_PACKER_SCAN_WEIGHTS_HEADER_H

#include <stdint.h>

/* The greatest end among the "data_offsets" of a header; -1 where it is not plain enough to be
 * read so, and has to be parsed. A load only steps over the data by this; whoever uses the
 * weights has the whole header parsed and checked first. */
int64_t weights_data_nbytes(const uint8_t *header, uint64_t nbytes);

#endif
