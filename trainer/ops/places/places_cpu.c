/* SPDX-License-Identifier: Apache-2.0 */
/* places_cpu.c: the places of tokens, which one thread reads at the speed of memory. */
#include "trainer/backends/cpu/cpu.h"
#include "trainer/ops/places/places.h"

static int prepare_places_cpu(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	(void)env;
	(void)err;
	*ret_state = n;
	return 0;
}

static void run_places_cpu(void *state, const struct kernel_args *args)
{
	places_run(state, args);
}

extern const struct kernel places_cpu;
const struct kernel places_cpu = { .prepare = prepare_places_cpu, .run = run_places_cpu };
