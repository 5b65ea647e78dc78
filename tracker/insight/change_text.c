/* change_text.c: describes a change in words. */
#include "tracker/insight/change_text.h"

#include <math.h>
#include <stdlib.h>

#define WHOLE_SHARE 0.9   /* of the difference: reported as all of it */
#define NAMED_SHARE 0.1 /* smaller shares are not reported */

enum { PARTS_NAMED = 3 };

struct change_share {
	int phase;
	double share; /* of the whole difference; negative: in the other direction */
};

static int compare_shares(const void *a, const void *b)
{
	double x = ((const struct change_share *)a)->share, y = ((const struct change_share *)b)->share;

	return (x < y) - (x > y);
}

static bool is_significant(const struct change_part *p)
{
	return isnan(p->low) || p->low > 0 || p->high < 0;
}

/* Sorts the phases by share, largest first; phases without a significant difference count as 0. */
static void rank_phases(const struct change *c, struct change_share *parts)
{
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		const struct change_part *p = &c->phase[k];

		parts[k] = (struct change_share){ k, is_significant(p) ? p->seconds / c->whole.seconds : 0 };
	}
	qsort(parts, STEP_TIME_PHASES, sizeof(*parts), compare_shares);
}

static void describe_phases(struct buf *out, const struct change *c)
{
	struct change_share parts[STEP_TIME_PHASES], *last = &parts[STEP_TIME_PHASES - 1];
	int n = 0;

	rank_phases(c, parts);
	if (!(parts[0].share >= NAMED_SHARE)) {
		buf_adds(out, ", spread over all phases");
		return;
	}
	while (n < PARTS_NAMED && parts[n].share >= NAMED_SHARE)
		n++;
	if (n == 1 && parts[0].share >= WHOLE_SHARE)
		buf_addf(out, ", all of it in %s", step_time_phase_name((enum step_time_phase)parts[0].phase));
	for (int i = 0; (n > 1 || parts[0].share < WHOLE_SHARE) && i < n; i++)
		buf_addf(out, "%s %.0f %%%s in %s", i ? " and" : ",", 100 * parts[i].share, i ? "" : " of it",
			 step_time_phase_name((enum step_time_phase)parts[i].phase));
	if (last->share <= -NAMED_SHARE)
		buf_addf(out, ", while %s offset %.0f %% of that",
			 step_time_phase_name((enum step_time_phase)last->phase), -100 * last->share);
}

static void describe_difference(struct buf *out, const struct change *c, const char *a, const char *b)
{
	bool faster = c->low > 1;

	buf_addf(out, "%s is %.2fx %s than %s (%.2f-%.2f)", b, faster ? c->factor : 1 / c->factor,
		 faster ? "faster" : "slower", a, faster ? c->low : 1 / c->high, faster ? c->high : 1 / c->low);
	describe_phases(out, c);
}

void change_text_change(struct buf *out, const struct change *c, const char *a, const char *b)
{
	if (c->low > 1 || c->high < 1) {
		describe_difference(out, c, a, b);
	} else if (!isnan(c->low)) {
		buf_addf(out, "no significant difference between %s and %s: %.2fx (%.2f-%.2f)", a, b, c->factor, c->low,
			 c->high);
	} else if (c->basis == CHANGE_TOO_FEW) {
		buf_addf(out, "too few steps to compare %s and %s: each side needs %d independent steps",
			 a, b, CHANGE_EFFECTIVE_LEAST);
	} else {
		buf_addf(out, "a sample took %s %.2f times as long as %s", a, c->factor, b);
		describe_phases(out, c);
		buf_adds(out,
			 "; the spread of equal runs is unknown, so this may be chance: repeat both with "
			      "another --seed, or use dptrain bench --compare-with");
	}
}
