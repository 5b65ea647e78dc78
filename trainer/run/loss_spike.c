/* SPDX-License-Identifier: Apache-2.0 */
/* loss_spike.c: each rank keeps the worst samples of its part of the step. All ranks see the same loss, so they detect
 * a spike together without communication. */
#include "trainer/run/observers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "tracker/insight/learning.h"
#include "tracker/mem/mem.h"

#define SAMPLES 5     /* samples named in an alert */
#define SPIKES_MAX 20 /* most alerts of a run: more would tell nothing new */

struct bad_sample {
	double loss; /* sum over its rows; -INFINITY: no sample */
	int64_t position;
};

struct loss_spike {
	struct bad_sample worst[2][SAMPLES]; /* of this step so far, and of the next one; largest loss first */
	struct learning_usual usual;
	int alerts; /* so far */
};

/* A sample as sent to the other ranks. */
struct spike_sample {
	double loss; /* mean over its targets */
	int64_t number;
	char where[240];
};

struct loss_spike *loss_spike_new(void)
{
	return mem_zalloc(sizeof(struct loss_spike));
}

void loss_spike_free(struct loss_spike *s)
{
	free(s);
}

static void keep_worst_sample(struct bad_sample *worst, double loss, int64_t position)
{
	int at = SAMPLES;

	if (!isfinite(loss) || loss <= worst[SAMPLES - 1].loss)
		return;
	while (at > 0 && loss > worst[at - 1].loss)
		at--;
	memmove(worst + at + 1, worst + at, (size_t)(SAMPLES - 1 - at) * sizeof(*worst));
	worst[at] = (struct bad_sample){ loss, position };
}

/* Scans the losses of the micro-batch in a slot of the program. */
static void scan_sample_losses(struct bad_sample *worst, const struct loss_spike_micro *m, int slot)
{
	const int64_t all = shape_count(&m->program->losses->shape);
	const int64_t micro = m->program->micro, rows = micro ? all / micro : 0;
	const int64_t first = slot * micro;

	for (int64_t i = 0; i < micro && first + i < m->samples; i++) {
		double sum = 0;

		for (int64_t k = 0; k < rows; k++)
			sum += m->losses[slot * all + i * rows + k];
		keep_worst_sample(worst, sum, m->position + first + i);
	}
}

void loss_spike_micro(struct loss_spike *s, const struct loss_spike_micro *m)
{
	struct bad_sample *worst;

	if (!s)
		return;
	worst = s->worst[m->step % 2];
	for (int i = 0; m->begins && i < SAMPLES; i++)
		worst[i] = (struct bad_sample){ -INFINITY, -1 };
	for (int slot = 0; m->losses && slot < m->program->schedule.slots; slot++)
		scan_sample_losses(worst, m, slot);
}

/* Lists this rank's worst samples with their place in the data set. */
static void name_samples(const struct engine *e, const struct step_result *r, struct spike_sample *ret)
{
	const struct dataset *d = e->workload.data;

	for (int i = 0; i < SAMPLES; i++) {
		const struct bad_sample *b = &e->spike->worst[r->step % 2][i];

		ret[i] = (struct spike_sample){ .loss = b->loss, .number = -1 };
		if (b->position < 0)
			continue;
		ret[i].number = train_schedule_sample(&e->train_schedule, r->epoch - 1, b->position);
		ret[i].loss /= fmax(1, (double)dataset_weight(d, SPLIT_TRAIN, ret[i].number));
		dataset_where(d, SPLIT_TRAIN, ret[i].number, ret[i].where, sizeof(ret[i].where));
	}
}

static int compare_sample_losses(const void *a, const void *b)
{
	double x = ((const struct spike_sample *)a)->loss, y = ((const struct spike_sample *)b)->loss;

	return (x < y) - (x > y);
}

static void report_spike(struct dptrack_run *run, const struct step_result *r, double usual,
			 const struct spike_sample *all)
{
	char title[200], text[SAMPLES * 320 + 1];
	size_t n = 0;

	snprintf(title, sizeof(title), "loss spike at step %lld: %.4g, usually %.4g", (long long)r->step, r->loss,
		 usual);
	text[0] = '\0';
	for (int i = 0; i < SAMPLES && all[i].number >= 0; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%ssample %lld%s%s%s: loss %.4g", i ? "; " : "",
				      (long long)all[i].number, all[i].where[0] ? " (" : "", all[i].where,
				      all[i].where[0] ? ")" : "", all[i].loss);
	dptrack_alert(run, DPTRACK_WARNING, r->step, title, text);
	log_warn("%s%s%s", title, n ? "; its largest losses: " : "", text);
}

/* Gathers the samples of all ranks, largest loss first, on every rank. */
static int gather_spike_samples(struct engine *e, const struct step_result *r, struct spike_sample *all,
				struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	int rc;

	name_samples(e, r, all + (size_t)c->rank * SAMPLES);
	rc = c->ops->all_gather(c, all, (int64_t)(SAMPLES * sizeof(*all)), err);
	qsort(all, (size_t)c->world * SAMPLES, sizeof(*all), compare_sample_losses);
	return rc;
}

/* Losses of the small last batch of an epoch vary more than those of whole batches. */
static bool is_partial_batch(const struct engine *e, const struct step_result *r)
{
	const struct range all = sampler_global(&e->train_schedule.train, r->in_epoch - 1);

	return 2 * (all.end - all.begin) < e->train_schedule.train.global_batch;
}

int loss_spike_check(struct engine *e, struct dptrack_run *run, const struct step_result *r, struct err *err)
{
	struct loss_spike *s = e->spike;
	struct spike_sample *all;
	double usual;
	int rc;

	if (!s || is_partial_batch(e, r) || !learning_spikes(&s->usual, r->loss, &usual) || s->alerts++ >= SPIKES_MAX)
		return 0;
	all = mem_array((size_t)e->rank.context->world * SAMPLES, sizeof(*all));
	rc = gather_spike_samples(e, r, all, err);
	if (!rc && rank_is_root(&e->rank))
		report_spike(run, r, usual, all);
	free(all);
	return rc;
}
