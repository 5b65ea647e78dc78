/* change_text.c: what a change bought, in words. */
#include "tracker/insight/change_text.h"

#include <math.h>
#include <stdlib.h>

#define ALL_SHARE 0.9   /* of the difference: all of it */
#define NAMED_SHARE 0.1 /* is worth a word */

enum { PARTS_NAMED = 3 };

struct part {
	int phase;
	double share; /* of the whole difference; negative: against it */
};

static int by_share(const void *a, const void *b)
{
	double x = ((const struct part *)a)->share, y = ((const struct part *)b)->share;

	return (x < y) - (x > y);
}

static bool is_told(const struct change_part *p)
{
	return isnan(p->low) || p->low > 0 || p->high < 0;
}

/* Phases by their share, largest first; those that repeats do not tell from nothing count as nothing. */
static void find_parts(const struct change *c, struct part *parts)
{
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		const struct change_part *p = &c->phase[k];

		parts[k] = (struct part){ k, is_told(p) ? p->seconds / c->whole.seconds : 0 };
	}
	qsort(parts, STEP_TIME_PHASES, sizeof(*parts), by_share);
}

static void add_where(struct buf *out, const struct change *c)
{
	struct part parts[STEP_TIME_PHASES], *last = &parts[STEP_TIME_PHASES - 1];
	int n = 0;

	find_parts(c, parts);
	if (!(parts[0].share >= NAMED_SHARE)) {
		buf_adds(out, ", spread over all phases");
		return;
	}
	while (n < PARTS_NAMED && parts[n].share >= NAMED_SHARE)
		n++;
	if (n == 1 && parts[0].share >= ALL_SHARE)
		buf_addf(out, ", all of it in %s", step_time_phase_name((enum step_time_phase)parts[0].phase));
	for (int i = 0; (n > 1 || parts[0].share < ALL_SHARE) && i < n; i++)
		buf_addf(out, "%s %.0f %%%s in %s", i ? " and" : ",", 100 * parts[i].share, i ? "" : " of it",
			 step_time_phase_name((enum step_time_phase)parts[i].phase));
	if (last->share <= -NAMED_SHARE)
		buf_addf(out, ", while %s took %.0f %% of that back", step_time_phase_name((enum step_time_phase)last->phase),
			 -100 * last->share);
}

static void add_told(struct buf *out, const struct change *c, const char *a, const char *b)
{
	bool faster = c->low > 1;

	buf_addf(out, "%s is %.2fx %s than %s (%.2f-%.2f)", b, faster ? c->factor : 1 / c->factor,
		 faster ? "faster" : "slower", a, faster ? c->low : 1 / c->high, faster ? c->high : 1 / c->low);
	add_where(out, c);
}

void change_text_change(struct buf *out, const struct change *c, const char *a, const char *b)
{
	if (c->low > 1 || c->high < 1) {
		add_told(out, c, a, b);
	} else if (!isnan(c->low)) {
		buf_addf(out, "no difference between %s and %s can be told: %.2fx (%.2f-%.2f)", a, b, c->factor, c->low,
			 c->high);
	} else if (c->basis == CHANGE_TOO_FEW) {
		buf_addf(out, "too few steps to compare %s and %s: a side needs %d that are independent of each other",
			 a, b, CHANGE_EFFECTIVE_LEAST);
	} else {
		buf_addf(out, "a sample took %s %.2f times as long as %s", a, c->factor, b);
		add_where(out, c);
		buf_adds(out,
			 "; nothing here tells how much equal runs differ, so this may be chance: repeat both with "
			      "another --seed, or use dptrain bench --compare-with");
	}
}
