/* CRC-32/ISO-HDLC, as in zlib. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t crc32_of(const uint8_t *bytes, size_t nbytes);

/* The CRC-32 of all bytes before, of which `before` is the CRC-32 (0 for none), and these. */
uint32_t crc32_more(uint32_t before, const uint8_t *bytes, size_t nbytes);
