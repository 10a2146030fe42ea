/* The size of the data that a safetensors header describes, without parsing the header. */
#pragma once

#include <stdint.h>

/* Return the greatest end among the "data_offsets" of a header, or -1 if the header must be parsed
 * to find it. A load uses the result only to skip the data; the first use of the weights parses and
 * checks the whole header. */
int64_t weights_data_nbytes(const uint8_t *header, uint64_t nbytes);
