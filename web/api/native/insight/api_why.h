/* api_why.h: a comparison of runs, as api_why.c makes it and why_text.c prints it. */
#ifndef DPT_NATIVE_API_WHY_H
#define DPT_NATIVE_API_WHY_H

#include "web/api/native/insight/why_read.h"

/* Two consecutive runs. */
struct why_pair {
	const struct why_side *a, *b;
	struct change change;
	double product;     /* of the factors since the first run */
	const char *sentence;
	const char **params; /* keys that differ */
	size_t param_count;
	double metric[2];   /* mean of the goal's best values; NaN: none */
	int worse;          /* 1: the second run is worse than repeats explain; 0: it is not; -1: unknown */
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
