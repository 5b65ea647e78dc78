/* sha256.h: SHA-256 (FIPS 180-4), for ids made from paths and names of contents. */
#ifndef DPT_BASE_SHA256_H
#define DPT_BASE_SHA256_H

#include <stddef.h>

void sha256_hex(const void *bytes, size_t n, char ret[65]); /* 64 lower-case hex digits */

#endif
