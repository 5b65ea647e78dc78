/* SPDX-License-Identifier: Apache-2.0 */
/* conformance.h: what the fakes of CUDA and its libraries claim about the real ones: each rule is a row, which is
 * checked on both (conformance_fake on the fake device, conformance on a GPU). */
#ifndef DPT_TESTS_GPU_CONFORMANCE_H
#define DPT_TESTS_GPU_CONFORMANCE_H

#include <stddef.h>

/* Result of a row: NULL: the rule holds; CONFORMANCE_LEFT_OUT and the reason; otherwise the observed behaviour. */
#define CONFORMANCE_LEFT_OUT "left out: "

struct conformance_row {
	const char *rule;
	const char *(*check)(void);
};

/* Each list ends with a rule of NULL. */
extern const struct conformance_row conformance_runtime[];   /* conformance.cu: the runtime, streams, graphs, kernels */
extern const struct conformance_row conformance_libraries[]; /* conformance_libraries.c */

#endif
