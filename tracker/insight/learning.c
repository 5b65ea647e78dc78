/* SPDX-License-Identifier: Apache-2.0 */
/* learning.c: detects loss spikes and overfitting. Medians define the usual loss: neither a spike nor a falling loss
 * moves them much. */
#include "tracker/insight/learning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/array.h"

#define RECENT_LEAST 20	    /* steps before a spike can be found */
#define SPIKE_DEVIATIONS 10 /* robust standard deviations above the median */
#define SPIKE_RISE 0.2	    /* and fraction of the median */
#define SPIKE_FIRST 0.05    /* and fraction of the first losses: late in training small rises do not matter */
#define SPIKE_LEAST 0.01    /* and nats, for runs that begin with trained weights */
#define RISE_DEVIATIONS 5   /* for validation: the lowest of many noisy values is 2 to 3 deviations below their mean */
#define RISE_LEAST 0.01	    /* fraction of the lowest loss */
#define AFTER_LEAST 3	    /* validations after the lowest */

bool learning_spikes(struct learning_usual *u, double loss, double *ret_usual)
{
	const size_t n = u->n < LEARNING_RECENT ? (size_t)u->n : LEARNING_RECENT;
	double v[LEARNING_RECENT], usual, deviation, limit;
	bool is_spike = false;

	if (!isfinite(loss))
		return false;
	if (n >= RECENT_LEAST) {
		memcpy(v, u->recent, n * sizeof(*v));
		usual = *ret_usual = median_robust(v, n, &deviation);
		limit = fmax(SPIKE_DEVIATIONS * deviation, SPIKE_RISE * fabs(usual));
		limit = fmax(limit, fmax(SPIKE_FIRST * fabs(u->most), SPIKE_LEAST));
		is_spike = loss > usual + limit && u->n >= u->quiet;
	}
	if (n < RECENT_LEAST)
		u->most = n ? fmax(u->most, loss) : loss;
	u->recent[u->n++ % LEARNING_RECENT] = loss;
	if (is_spike)
		u->quiet = u->n + RECENT_LEAST;
	return is_spike;
}

static const struct learning_series pairs[] = {
	{ "val/loss", "train/loss", false },
	{ "epoch/val_loss", "epoch/train_loss", true },
	{ "eval/loss", "train/loss", false },
	{ "val_loss", "train_loss", false },
	{ "val_loss", "loss", false },
};

enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };

/* Two bits per pair. */
void learning_see(unsigned *seen, const char *key)
{
	for (int i = 0; i < PAIRS; i++)
		*seen |= (unsigned)!strcmp(key, pairs[i].validation) << 2 * i |
			 (unsigned)!strcmp(key, pairs[i].training) << (2 * i + 1);
}

const struct learning_series *learning_pick(unsigned seen)
{
	for (int i = 0; i < PAIRS; i++)
		if ((seen >> 2 * i & 3) == 3)
			return &pairs[i];
	return NULL;
}

const struct learning_series *learning_validates(const char *key)
{
	for (int i = 0; i < PAIRS; i++)
		if (!strcmp(key, pairs[i].validation))
			return &pairs[i];
	return NULL;
}

struct validation {
	int64_t step;
	double loss, training, n; /* training: sum of n losses */
};

struct learning {
	struct validation *at; /* in the order of steps */
	size_t n, room;
	double *values; /* [room] */
};

int learning_new(struct learning **ret, struct err *err)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(err, "losses of a run");
}

void learning_free(struct learning *l)
{
	if (!l)
		return;
	free(l->at);
	free(l->values);
	free(l);
}

/* Returns the first validation at or after the step. */
static size_t find_validation(const struct learning *l, int64_t step)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->at[mid].step < step)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int reserve_validations(struct learning *l, struct err *err)
{
	size_t values_room = l->room; /* both arrays have the same */

	if (!array_reserve(&l->values, &values_room, l->n + 1) || !array_reserve(&l->at, &l->room, l->n + 1))
		return err_nomem(err, "validations");
	return 0;
}

int learning_validation(struct learning *l, int64_t step, double loss, struct err *err)
{
	const size_t at = find_validation(l, step);
	int rc;

	if (!isfinite(loss) || l->n == LEARNING_VALIDATIONS_MAX)
		return 0;
	if (at < l->n && l->at[at].step == step) {
		l->at[at].loss = loss;
		return 0;
	}
	rc = reserve_validations(l, err);
	if (rc)
		return rc;
	memmove(l->at + at + 1, l->at + at, (l->n - at) * sizeof(*l->at));
	l->at[at] = (struct validation){ .step = step, .loss = loss };
	l->n++;
	return 0;
}

void learning_training(struct learning *l, int64_t step, double loss)
{
	const size_t at = find_validation(l, step);

	if (at == l->n || !isfinite(loss))
		return;
	l->at[at].training += loss;
	l->at[at].n++;
}

/* Robust standard deviation of the noise, from second differences, which a slowly bending curve does not affect. */
static double estimate_scatter(struct learning *l)
{
	size_t n = 0;

	for (size_t i = 2; i < l->n; i++)
		l->values[n++] = fabs(l->at[i].loss - 2 * l->at[i - 1].loss + l->at[i - 2].loss);
	return n ? MEDIAN_MAD_DEVIATION * median_of(l->values, n) / sqrt(6) : 0;
}

/* Mean training loss of validations [from, to); NaN: no data. */
static double compute_training_loss(const struct learning *l, size_t from, size_t to)
{
	double sum = 0, n = 0;

	for (size_t i = from; i < to; i++) {
		sum += l->at[i].training;
		n += l->at[i].n;
	}
	return sum / n;
}

bool learning_overfits(struct learning *l, struct learning_overfit *ret)
{
	size_t lowest = 0, half;
	double now = 0, rise;

	for (size_t i = 1; i < l->n; i++)
		lowest = l->at[i].loss < l->at[lowest].loss ? i : lowest;
	if (l->n < lowest + 1 + AFTER_LEAST)
		return false;
	half = l->n - (l->n - lowest) / 2;
	for (size_t i = half; i < l->n; i++)
		now += l->at[i].loss / (double)(l->n - half);
	*ret = (struct learning_overfit){ l->at[lowest].step,
					  l->at[l->n - 1].step,
					  l->at[lowest].loss,
					  now,
					  compute_training_loss(l, lowest, lowest + 1),
					  compute_training_loss(l, half, l->n) };
	rise = fmax(RISE_DEVIATIONS * estimate_scatter(l), RISE_LEAST * fabs(ret->lowest));
	return now - ret->lowest > rise && ret->training_now < ret->training;
}

void learning_sentence(struct buf *out, const struct learning_overfit *o)
{
	buf_addf(out,
		 "overfitting since step %lld: the validation loss was lowest there (%.4g) and is %.4g by step %lld, "
		 "while the training loss fell from %.4g to %.4g; --save-best keeps the better weights; more data, "
		 "--augment, --dropout or --wd delay it",
		 (long long)o->step, o->lowest, o->now, (long long)o->last, o->training, o->training_now);
}
