/* api_why.h: a comparison, ready to be written: what api_why.c finds and each format prints. */
#ifndef DPT_NATIVE_API_WHY_H
#define DPT_NATIVE_API_WHY_H

#include "web/api/native/insight/why_read.h"

/* From one run to the next. */
struct why_pair {
	const struct why_side *a, *b;
	struct change change;
	double product;     /* of the factors from the first run on */
	const char *sentence;
	const char **params; /* keys that differ */
	size_t param_count;
	double metric[2];   /* mean best of the goal; NaN: none */
	int worse;          /* 1: the second's is worse than repeats explain; 0: not; -1: nothing tells */
};

struct why_report {
	const struct why *why;
	struct why_pair *pairs;
	size_t n;
};

void why_csv(struct call *c, const struct why_report *r);
void why_markdown(struct call *c, const struct why_report *r);
void why_svg(struct call *c, const struct why_report *r);

#endif
