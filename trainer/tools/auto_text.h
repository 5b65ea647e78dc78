/* SPDX-License-Identifier: Apache-2.0 */
/* auto_text.h: prints plans as flags, as a table, as JSON and as sentences. */
#ifndef DPT_TOOLS_AUTO_TEXT_H
#define DPT_TOOLS_AUTO_TEXT_H

#include "trainer/advise/plan_search.h"
#include "trainer/config/config.h"

struct auto_found {
	struct hardware hardware;
	struct plan_search search;
	int precisions[2]; /* enum config_precision */
	int64_t global_batch;
	int64_t per_sample; /* units of throughput in a sample: 1, or its tokens */
};

enum { AUTO_FLAGS_MAX = 16 };

/* The flags that start a plan. */
struct auto_flags {
	struct {
		enum flag_id id;
		const char *name; /* as it is typed */
		char value[260];  /* fits the blocks of 64 stages */
	} flag[AUTO_FLAGS_MAX];
	int n;
};

void auto_flags_of(struct auto_flags *ret, const struct search_plan *p, int64_t global_batch);
void auto_flags_text(const struct auto_flags *flags, struct buf *out); /* "--strategy ddp --batch-size 8" */

/* Prints all plans; cfg selects --json and --explain. */
void auto_text(const struct auto_found *f, const struct run_config *cfg, struct buf *out);

#endif
