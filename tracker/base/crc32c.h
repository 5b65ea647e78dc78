/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.h: CRC-32C (Castagnoli, reflected polynomial 0x82F63B78) and TFRecord's mask of it. */
#ifndef DPT_BASE_CRC32C_H
#define DPT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues crc (0 at the start) over n bytes. Uses CPU instructions where available. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t n);

/* TFRecord stores rotr(crc, 15) + 0xa282ead8 in place of the plain value. */
uint32_t crc32c_mask(uint32_t crc);

#endif
