/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: the input as the state.json of a checkpoint: refused in one line, or with values in range. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/weights/checkpoint.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct err err = ERR_INIT;
	struct state_file f;

	if (state_parse(&f, "input", (const char *)bytes, n, &err)) {
		FUZZ_HOLDS(err.code == ERR_USAGE && err.text[0] && !strchr(err.text, '\n'));
		return 0;
	}
	FUZZ_HOLDS(strlen(f.state.run_id) == 32 && f.state.step >= 0 && f.state.step < INT64_MAX && f.state.epoch >= 0);
	FUZZ_HOLDS(f.state.segment >= 0 && f.state.world > 0 && f.state.global_batch > 0 && f.state.samples >= 0);
	state_done(&f);
	return 0;
}
