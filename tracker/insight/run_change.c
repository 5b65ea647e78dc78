/* SPDX-License-Identifier: Apache-2.0 */
/* run_change.c: compares two sides of equal runs, in numbers and as a sentence. */
#include "tracker/insight/run_change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/insight/spread.h"

struct mean_estimate {
	double variance; /* of the mean */
	double df;
};

static double read_log_seconds(const struct step_time *p, int unused)
{
	(void)unused;
	return log(p->seconds);
}

static double read_phase_seconds(const struct step_time *p, int phase)
{
	return phase < STEP_TIME_PHASES ? p->phase[phase] : p->seconds;
}

struct quantity {
	double (*of)(const struct step_time *p, int phase);
	int phase;
};

static double compute_side_mean(struct run_change_side s, struct quantity q)
{
	double sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += q.of(&s.runs[i], q.phase);
	return sum / (double)s.n;
}

static double sum_squared_deviations(struct run_change_side s, struct quantity q)
{
	double mean = compute_side_mean(s, q), sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += pow(q.of(&s.runs[i], q.phase) - mean, 2);
	return sum;
}

void run_change_pool_add(struct run_change_pool *pool, struct run_change_side group)
{
	double mean;

	if (group.n < 2)
		return;
	mean = compute_side_mean(group, (struct quantity){ read_phase_seconds, STEP_TIME_PHASES });
	pool->log_squares += sum_squared_deviations(group, (struct quantity){ read_log_seconds, 0 });
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		pool->squares[k] +=
			sum_squared_deviations(group, (struct quantity){ read_phase_seconds, k }) / (mean * mean);
	for (size_t i = 0; i < group.n; i++)
		pool->within += isnan(group.runs[i].variance) ? 0 : group.runs[i].variance;
	pool->df += (double)group.n - 1;
	pool->runs += group.n;
}

static double sum_effective_steps(struct run_change_side s)
{
	double sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += s.runs[i].effective;
	return sum;
}

static double compute_mean_variance(struct run_change_side s)
{
	double sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += s.runs[i].variance;
	return sum / (double)s.n;
}

/* Welch & Satterthwaite. If neither estimate has any variance, the degrees of freedom are those of both together. */
static double welch_df(const struct mean_estimate *e)
{
	double sum = e[0].variance + e[1].variance;
	double parts = e[0].variance * e[0].variance / e[0].df + e[1].variance * e[1].variance / e[1].df;

	return parts > 0 ? sum * sum / parts : e[0].df + e[1].df;
}

static double half_width_from_estimates(const struct mean_estimate *e)
{
	return t_distribution_quantile(RUN_CHANGE_CONFIDENCE, welch_df(e)) * sqrt(e[0].variance + e[1].variance);
}

/* Half the width of the interval of the difference of two quantities. */
static double half_width_from_repeats(const struct run_change_side *s, struct quantity q)
{
	struct mean_estimate e[2];

	for (int i = 0; i < 2; i++) {
		double n = (double)s[i].n;

		e[i] = (struct mean_estimate){ .df = n - 1, .variance = sum_squared_deviations(s[i], q) / (n - 1) / n };
	}
	return half_width_from_estimates(e);
}

static struct mean_estimate estimate_mean(const double *v, size_t n)
{
	struct mean_estimate e = { .df = (double)n - 1 };
	double mean = 0;

	for (size_t i = 0; i < n; i++)
		mean += v[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		e.variance += pow(v[i] - mean, 2) / e.df / (double)n;
	return e;
}

double run_change_half_width(const double *a, size_t n_a, const double *b, size_t n_b)
{
	struct mean_estimate e[2];

	if (n_a < 2 || n_b < 2)
		return NAN;
	e[0] = estimate_mean(a, n_a);
	e[1] = estimate_mean(b, n_b);
	return half_width_from_estimates(e);
}

/* Uses the pool's spread: the variance of one run from the pool, plus the additional variance of a shorter or noisier
 * run. */
static double half_width_from_pool(const struct run_change_side *s, const struct run_change_pool *pool, double squares)
{
	double sum = 0, usual = pool->within / (double)pool->runs;

	for (int i = 0; i < 2; i++)
		sum += (squares / pool->df + fmax(0, compute_mean_variance(s[i]) - usual)) / (double)s[i].n;
	return t_distribution_quantile(RUN_CHANGE_CONFIDENCE, pool->df) * sqrt(sum);
}

static void set_change_part(struct run_change_part *p, double seconds, double half)
{
	p->seconds = seconds;
	p->low = seconds - half;
	p->high = seconds + half;
}

static double subtract_means(const struct run_change_side *s, struct quantity q)
{
	return compute_side_mean(s[1], q) - compute_side_mean(s[0], q);
}

static double find_half_width(const struct run_change_side *s, const struct run_change_pool *pool,
			      const struct run_change *c, int phase)
{
	struct quantity q = { read_phase_seconds, phase };
	double scale = (c->seconds[0] + c->seconds[1]) / 2;

	if (c->basis == RUN_CHANGE_REPEATS)
		return half_width_from_repeats(s, q);
	if (c->basis != RUN_CHANGE_POOLED)
		return NAN;
	return scale *
	       half_width_from_pool(s, pool, phase < STEP_TIME_PHASES ? pool->squares[phase] : pool->log_squares);
}

/* Interval from the steps of these runs alone: the result if these same runs had continued. */
static void steps_interval(const struct run_change_side *s, struct run_change *c)
{
	struct mean_estimate e[2];
	double half;

	c->steps_low = c->steps_high = NAN;
	for (int i = 0; i < 2; i++) {
		double blocks = 0;

		for (size_t k = 0; k < s[i].n; k++)
			blocks += (double)s[i].runs[k].steps / s[i].runs[k].block;
		e[i] = (struct mean_estimate){ .variance = compute_mean_variance(s[i]) / (double)s[i].n, .df = blocks };
	}
	if (c->basis == RUN_CHANGE_TOO_FEW)
		return;
	half = half_width_from_estimates(e);
	c->steps_low = c->factor * exp(-half);
	c->steps_high = c->factor * exp(half);
}

static enum run_change_basis choose_basis(const struct run_change_side *s, const struct run_change_pool *pool)
{
	for (int i = 0; i < 2; i++)
		if (!(sum_effective_steps(s[i]) >= RUN_CHANGE_EFFECTIVE_LEAST))
			return RUN_CHANGE_TOO_FEW;
	if (s[0].n > 1 && s[1].n > 1)
		return RUN_CHANGE_REPEATS;
	return pool->df > 0 ? RUN_CHANGE_POOLED : RUN_CHANGE_ALONE;
}

void run_change_compute(struct run_change_side a, struct run_change_side b, const struct run_change_pool *pool,
			struct run_change *ret)
{
	const struct run_change_side s[2] = { a, b };
	const struct quantity logs = { read_log_seconds, 0 };
	struct run_change_pool all = *pool;
	struct run_change c = { .low = NAN, .high = NAN };
	double half = NAN;

	run_change_pool_add(&all, a);
	run_change_pool_add(&all, b);
	c.basis = choose_basis(s, &all);
	for (int i = 0; i < 2; i++)
		c.seconds[i] = exp(compute_side_mean(s[i], logs));
	c.factor = c.seconds[0] / c.seconds[1];
	if (c.basis == RUN_CHANGE_REPEATS)
		half = half_width_from_repeats(s, logs);
	else if (c.basis == RUN_CHANGE_POOLED)
		half = half_width_from_pool(s, &all, all.log_squares);
	c.low = c.factor * exp(-half);
	c.high = c.factor * exp(half);
	steps_interval(s, &c);
	for (int k = 0; k <= STEP_TIME_PHASES; k++)
		set_change_part(k < STEP_TIME_PHASES ? &c.phase[k] : &c.whole,
				subtract_means(s, (struct quantity){ read_phase_seconds, k }),
				find_half_width(s, &all, &c, k));
	*ret = c;
}

/* ---- the sentence ---- */

#define WHOLE_SHARE 0.9 /* a share of the difference that is reported as all of it */
#define NAMED_SHARE 0.1 /* smaller shares are not reported */

enum { PARTS_NAMED = 3 };

struct run_change_share {
	int phase;
	double share; /* of the whole difference; negative: in the other direction */
};

static int compare_shares(const void *a, const void *b)
{
	double x = ((const struct run_change_share *)a)->share, y = ((const struct run_change_share *)b)->share;

	return (x < y) - (x > y);
}

static bool is_significant(const struct run_change_part *p)
{
	return isnan(p->low) || p->low > 0 || p->high < 0;
}

/* Sorts the phases by share, largest first; phases without a significant difference count as 0. */
static void rank_phases(const struct run_change *c, struct run_change_share *parts)
{
	for (int k = 0; k < STEP_TIME_PHASES; k++) {
		const struct run_change_part *p = &c->phase[k];

		parts[k] = (struct run_change_share){ k, is_significant(p) ? p->seconds / c->whole.seconds : 0 };
	}
	qsort(parts, STEP_TIME_PHASES, sizeof(*parts), compare_shares);
}

static void describe_phases(struct buf *out, const struct run_change *c)
{
	struct run_change_share parts[STEP_TIME_PHASES], *last = &parts[STEP_TIME_PHASES - 1];
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

static void describe_difference(struct buf *out, const struct run_change *c, const char *a, const char *b)
{
	bool faster = c->low > 1;

	buf_addf(out, "%s is %.2fx %s than %s (%.2f-%.2f)", b, faster ? c->factor : 1 / c->factor,
		 faster ? "faster" : "slower", a, faster ? c->low : 1 / c->high, faster ? c->high : 1 / c->low);
	describe_phases(out, c);
}

void run_change_describe(struct buf *out, const struct run_change *c, const char *a, const char *b)
{
	if (c->low > 1 || c->high < 1) {
		describe_difference(out, c, a, b);
	} else if (!isnan(c->low)) {
		buf_addf(out, "no significant difference between %s and %s: %.2fx (%.2f-%.2f)", a, b, c->factor, c->low,
			 c->high);
	} else if (c->basis == RUN_CHANGE_TOO_FEW) {
		buf_addf(out, "too few steps to compare %s and %s: each side needs %d independent steps", a, b,
			 RUN_CHANGE_EFFECTIVE_LEAST);
	} else {
		buf_addf(out, "per %s, %s took %.2fx the time of %s", c->by_step ? "step" : "sample", b,
			 1 / c->factor, a);
		describe_phases(out, c);
		buf_adds(out, "; the spread of equal runs is unknown, so this may be chance: repeat both with "
			      "another --seed, or use dptrain bench --compare-with");
	}
	if (c->by_clock[0] || c->by_clock[1])
		buf_addf(out, "; %s%s%s without a phase/step above 0: timed by the clock from point to point",
			 c->by_clock[0] ? a : "", c->by_clock[0] && c->by_clock[1] ? " and " : "",
			 c->by_clock[1] ? b : "");
}

const char *run_change_cause(const char *key, size_t i)
{
	static const char *const follows[][2] = {
#define FOLLOWS(key, other) { key, other },
#include "schema/insight/param_follows.def"
#undef FOLLOWS
	};

	for (size_t k = 0; k < sizeof(follows) / sizeof(follows[0]); k++)
		if (!strcmp(follows[k][0], key) && !i--)
			return follows[k][1];
	return NULL;
}
