/* CRC-32/ISO-HDLC, as in zlib. */
#ifndef DSO_PACKER_SCAN_CRC32_H
#define DSO_PACKER_SCAN_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const uint8_t *bytes, size_t nbytes);

#endif
