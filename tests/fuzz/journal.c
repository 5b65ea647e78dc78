/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c: the input as a journal: one of ours, from a file and from a client, and one written by another program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "web/store/write/intake.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static void look(const struct intake *in, const struct ingest_op *op)
{
	size_t points = 0, i, k;
	const struct intake_item *item;
	unsigned sum = 0;

	FUZZ_HOLDS(in->end <= op->journal.offset + op->journal.len);
	for (i = 0; i < in->series_count; i++) {
		points += in->series[i].count;
		sum += (unsigned)strlen(in->series[i].key);
		for (k = 0; k < in->series[i].count; k++)
			sum += (unsigned)in->series[i].points[k].step;
	}
	FUZZ_HOLDS(points == in->point_count);
	for (item = in->items; item; item = item->next)
		sum += (item->key ? (unsigned)strlen(item->key) : 0) + (item->text ? (unsigned)strlen(item->text) : 0);
	__asm__ volatile("" : : "r"(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const struct ingest_foreign foreign = { .experiment = "e", .name = "n" };
	struct ingest_op op = { .kind = &change_journal, .run = "0123456789abcdef0123456789abcdef",
				.journal.writer = "0123456789abcdef0123456789abcdef" };
	int how;

	for (how = 0; how < 4; how++) {
		struct err err = ERR_INIT;
		struct intake in;

		op.journal.bytes = bytes;
		op.journal.len = n;
		op.journal.offset = how == 3 ? 1000 : 0;
		op.journal.path = how == 1 || how == 2 ? "e/n/events.out.tfevents.1.host" : NULL;
		op.journal.foreign = how == 2 ? &foreign : NULL;
		intake_init(&in);
		if (!intake_journal(&in, &op, &err))
			look(&in, &op);
		intake_done(&in);
	}
	return 0;
}
