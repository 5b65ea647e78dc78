/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c: the input as a tar archive of samples: every sample is inside it, whatever headers say, and the scan ends. */
#include "tests/fuzz/container.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct container_bytes a = { bytes, n };
	struct byte_source source = { .bytes = n, .read = container_read, .user = &a, .name = "input" };
	struct webdataset_fields fields = { .image = "jpg;png;npy", .label = "cls;json:label" };
	struct err err = ERR_INIT;
	struct samples s;

	samples_init(&s);
	FUZZ_HOLDS(!webdataset_scan(&s, &source, 0, &fields, &err) && !samples_end(&s, &err));
	for (int64_t i = 0; i < s.n; i++) {
		FUZZ_HOLDS(s.at[i].offset <= n && s.at[i].bytes <= n - s.at[i].offset && s.at[i].label >= 0);
		FUZZ_HOLDS(*samples_name(&s, i) && (size_t)s.n <= n / 1024 + 1);
	}
	samples_done(&s);
	return 0;
}
