/* run_change.c: two sides of equal runs against each other. */
#include "tracker/insight/run_change.h"

#include <math.h>
#include <string.h>

#include "tracker/insight/t_distribution.h"

struct estimate {
	double variance; /* of the mean */
	double df;
};

static double log_seconds(const struct step_time *p, int unused)
{
	(void)unused;
	return log(p->seconds);
}

static double phase_seconds(const struct step_time *p, int phase)
{
	return phase < STEP_TIME_PHASES ? p->phase[phase] : p->seconds;
}

struct quantity {
	double (*of)(const struct step_time *p, int phase);
	int phase;
};

static double mean_of(struct change_side s, struct quantity q)
{
	double sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += q.of(&s.runs[i], q.phase);
	return sum / (double)s.n;
}

static double squares_of(struct change_side s, struct quantity q)
{
	double mean = mean_of(s, q), sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += pow(q.of(&s.runs[i], q.phase) - mean, 2);
	return sum;
}

void change_pool_add(struct change_pool *pool, struct change_side group)
{
	double mean;

	if (group.n < 2)
		return;
	mean = mean_of(group, (struct quantity){ phase_seconds, STEP_TIME_PHASES });
	pool->log_squares += squares_of(group, (struct quantity){ log_seconds, 0 });
	for (int k = 0; k < STEP_TIME_PHASES; k++)
		pool->squares[k] += squares_of(group, (struct quantity){ phase_seconds, k }) / (mean * mean);
	for (size_t i = 0; i < group.n; i++)
		pool->within += isnan(group.runs[i].variance) ? 0 : group.runs[i].variance;
	pool->df += (double)group.n - 1;
	pool->runs += group.n;
}

static double effective_of(struct change_side s)
{
	double sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += s.runs[i].effective;
	return sum;
}

static double within_of(struct change_side s)
{
	double sum = 0;

	for (size_t i = 0; i < s.n; i++)
		sum += s.runs[i].variance;
	return sum / (double)s.n;
}

/* Welch & Satterthwaite; two estimates without any variance have as many degrees of freedom as runs. */
static double welch_df(const struct estimate *e)
{
	double sum = e[0].variance + e[1].variance;
	double parts = e[0].variance * e[0].variance / e[0].df + e[1].variance * e[1].variance / e[1].df;

	return parts > 0 ? sum * sum / parts : e[0].df + e[1].df;
}

static double half_of_estimates(const struct estimate *e)
{
	return t_distribution_quantile(CHANGE_CONFIDENCE, welch_df(e)) * sqrt(e[0].variance + e[1].variance);
}

/* Half the width of the interval of the difference of two quantities. */
static double half_width(const struct change_side *s, struct quantity q)
{
	struct estimate e[2];

	for (int i = 0; i < 2; i++) {
		double n = (double)s[i].n;

		e[i] = (struct estimate){ .df = n - 1, .variance = squares_of(s[i], q) / (n - 1) / n };
	}
	return half_of_estimates(e);
}

static struct estimate estimate_of(const double *v, size_t n)
{
	struct estimate e = { .df = (double)n - 1 };
	double mean = 0;

	for (size_t i = 0; i < n; i++)
		mean += v[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		e.variance += pow(v[i] - mean, 2) / e.df / (double)n;
	return e;
}

double change_half_width(const double *a, size_t n_a, const double *b, size_t n_b)
{
	struct estimate e[2];

	if (n_a < 2 || n_b < 2)
		return NAN;
	e[0] = estimate_of(a, n_a);
	e[1] = estimate_of(b, n_b);
	return half_of_estimates(e);
}

/* With a borrowed spread: variance of one run from the pool, and what a shorter or more restless run adds to it. */
static double pooled_half_width(const struct change_side *s, const struct change_pool *pool, double squares)
{
	double sum = 0, usual = pool->within / (double)pool->runs;

	for (int i = 0; i < 2; i++)
		sum += (squares / pool->df + fmax(0, within_of(s[i]) - usual)) / (double)s[i].n;
	return t_distribution_quantile(CHANGE_CONFIDENCE, pool->df) * sqrt(sum);
}

static void set_part(struct change_part *p, double seconds, double half)
{
	p->seconds = seconds;
	p->low = seconds - half;
	p->high = seconds + half;
}

static double difference(const struct change_side *s, struct quantity q)
{
	return mean_of(s[1], q) - mean_of(s[0], q);
}

static double half_of(const struct change_side *s, const struct change_pool *pool, const struct change *c, int phase)
{
	struct quantity q = { phase_seconds, phase };
	double scale = (c->seconds[0] + c->seconds[1]) / 2;

	if (c->basis == CHANGE_REPEATS)
		return half_width(s, q);
	if (c->basis != CHANGE_POOLED)
		return NAN;
	return scale * pooled_half_width(s, pool, phase < STEP_TIME_PHASES ? pool->squares[phase] : pool->log_squares);
}

/* The steps of these runs alone: what a run of theirs would have given, had it gone on. */
static void steps_interval(const struct change_side *s, struct change *c)
{
	struct estimate e[2];
	double half;

	c->steps_low = c->steps_high = NAN;
	for (int i = 0; i < 2; i++) {
		double blocks = 0;

		for (size_t k = 0; k < s[i].n; k++)
			blocks += (double)s[i].runs[k].steps / s[i].runs[k].block;
		e[i] = (struct estimate){ .variance = within_of(s[i]) / (double)s[i].n, .df = blocks };
	}
	if (c->basis == CHANGE_TOO_FEW)
		return;
	half = half_of_estimates(e);
	c->steps_low = c->factor * exp(-half);
	c->steps_high = c->factor * exp(half);
}

static enum change_basis basis_of(const struct change_side *s, const struct change_pool *pool)
{
	for (int i = 0; i < 2; i++)
		if (!(effective_of(s[i]) >= CHANGE_EFFECTIVE_LEAST))
			return CHANGE_TOO_FEW;
	if (s[0].n > 1 && s[1].n > 1)
		return CHANGE_REPEATS;
	return pool->df > 0 ? CHANGE_POOLED : CHANGE_ALONE;
}

void change_of(struct change_side a, struct change_side b, const struct change_pool *pool, struct change *ret)
{
	const struct change_side s[2] = { a, b };
	const struct quantity logs = { log_seconds, 0 };
	struct change_pool all = *pool;
	struct change c = { .low = NAN, .high = NAN };
	double half = NAN;

	change_pool_add(&all, a);
	change_pool_add(&all, b);
	c.basis = basis_of(s, &all);
	for (int i = 0; i < 2; i++)
		c.seconds[i] = exp(mean_of(s[i], logs));
	c.factor = c.seconds[0] / c.seconds[1];
	if (c.basis == CHANGE_REPEATS)
		half = half_width(s, logs);
	else if (c.basis == CHANGE_POOLED)
		half = pooled_half_width(s, &all, all.log_squares);
	c.low = c.factor * exp(-half);
	c.high = c.factor * exp(half);
	steps_interval(s, &c);
	for (int k = 0; k <= STEP_TIME_PHASES; k++)
		set_part(k < STEP_TIME_PHASES ? &c.phase[k] : &c.whole,
			 difference(s, (struct quantity){ phase_seconds, k }), half_of(s, &all, &c, k));
	*ret = c;
}
