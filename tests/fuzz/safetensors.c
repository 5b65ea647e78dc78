/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c: the input as a safetensors file: each statement of its header is refused or true. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/weights/safetensors.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void look(const struct safetensors *s, const uint8_t *bytes, size_t n)
{
	double sum = 0, v;

	for (size_t i = 0; i < safetensors_count(s); i++) {
		const struct st_tensor *t = safetensors_at(s, i);
		const uint8_t *data = t->data;

		FUZZ_HOLDS(data >= bytes && data <= bytes + n && t->bytes <= (size_t)(bytes + n - data));
		FUZZ_HOLDS((size_t)t->count * st_dtype_bytes(t->dtype) == t->bytes);
		FUZZ_HOLDS(safetensors_find(s, t->name) == t);
		if (i)
			FUZZ_HOLDS((const uint8_t *)safetensors_at(s, i - 1)->data + safetensors_at(s, i - 1)->bytes <=
				   data);
		for (int64_t k = 0; k < t->count; k++) {
			safetensors_f64(t, k, 1, &v);
			sum += v;
		}
	}
	__asm__ volatile("" : : "r"(&sum) : "memory");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct err err = ERR_INIT;
	struct safetensors *s;

	if (safetensors_open_memory(&s, "input", bytes, n, &err)) {
		FUZZ_HOLDS(err.code && err.text[0]);
		for (const char *p = err.text; *p; p++)
			FUZZ_HOLDS((unsigned char)*p >= 32);
		return 0;
	}
	look(s, bytes, n);
	safetensors_close(s);
	return 0;
}
