/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h: what every target of tests/fuzz defines. Linked with driver.c a target replays files; configured with
 * --enable-sanitizers=fuzzer it is a libFuzzer program (tests/fuzz/run.sh). */
#ifndef DPT_FUZZ_FUZZ_H
#define DPT_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A condition that is true for every input; aborts otherwise, so that the input is kept. */
#define FUZZ_HOLDS(what)                                                                                             \
	do {                                                                                                         \
		if (!(what)) {                                                                                       \
			fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #what);                    \
			abort();                                                                                     \
		}                                                                                                    \
	} while (0)

#endif
