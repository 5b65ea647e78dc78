/* SPDX-License-Identifier: Apache-2.0 */
/* x86.h: instructions of x86-64 that not every processor has. */
#ifndef DPT_BASE_X86_H
#define DPT_BASE_X86_H

#include <stdbool.h>

enum x86_set {
	X86_CRC32 = 1, /* SSE4.2 */
	X86_SHA = 2,   /* with SSE4.1 */
	X86_FOLD = 4,  /* VPCLMULQDQ and AVX-512F, with X86_CRC32 */
};

/* Whether processor and system have all instructions of the set; false on other processors. */
bool x86_has(enum x86_set set);

#endif
