/* sha256_mix.h: the compression function of SHA-256 on blocks of 64 bytes, in C and with CPU instructions. Private to
 * sha256.c and its test. */
#ifndef DPT_BASE_SHA256_MIX_H
#define DPT_BASE_SHA256_MIX_H

#include <stddef.h>
#include <stdint.h>

typedef void sha256_mix_fn(uint32_t h[8], const unsigned char *p, size_t blocks);
typedef void sha256_mix_both_fn(uint32_t h[8], uint32_t other[8], const unsigned char *p, size_t blocks);

sha256_mix_fn sha256_mix_plain;
sha256_mix_both_fn sha256_mix_both_plain; /* the same blocks into two states */

/* The fastest one on this machine. */
sha256_mix_fn *sha256_mix_best(void);
sha256_mix_both_fn *sha256_mix_both_best(void);

#endif
