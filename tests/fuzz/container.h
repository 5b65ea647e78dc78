/* SPDX-License-Identifier: Apache-2.0 */
/* container.h: the input as a container of samples, for the targets of formats that are read in place: every picture
 * is inside the input, whatever the input says, and every refusal is a usage error. */
#ifndef DPT_FUZZ_CONTAINER_H
#define DPT_FUZZ_CONTAINER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/data/container/webdataset.h"

struct container_bytes {
	const uint8_t *bytes;
	size_t n;
};

static inline int container_read(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct container_bytes *in = user;

	(void)err;
	FUZZ_HOLDS(at <= in->n && n <= in->n - at);
	if (n)
		memcpy(to, in->bytes + at, n);
	return 0;
}

static inline void container_look(const uint8_t *bytes, size_t n,
				  int (*scan)(struct samples *to, const struct byte_source *file, uint32_t object,
					      const struct webdataset_fields *f, struct err *err))
{
	struct container_bytes in = { bytes, n };
	struct byte_source source = { .bytes = n, .read = container_read, .user = &in, .name = "input" };
	struct webdataset_fields fields = { .image = "jpg;png;npy", .label = "cls" };
	struct err err = ERR_INIT;
	struct samples s;

	samples_init(&s);
	if (scan(&s, &source, 0, &fields, &err)) {
		FUZZ_HOLDS(err.code == ERR_USAGE);
	} else {
		FUZZ_HOLDS(!samples_end(&s, &err));
		for (int64_t i = 0; i < s.n; i++)
			FUZZ_HOLDS(s.at[i].offset <= n && s.at[i].bytes <= n - s.at[i].offset && s.at[i].label >= 0);
	}
	samples_done(&s);
}

#endif
