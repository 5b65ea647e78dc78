/* SPDX-License-Identifier: Apache-2.0 */
/* watch_record.c: the model defines what is watched. Each rank adds the values of its programs, unless a lower rank has
 * the same part of the same tensor. */
#include "trainer/run/observers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "trainer/ops/watch/watch.h"

#define KEY_BYTES 512
#define NOISE_MEAN_MAX 1000 /* measured steps in the running mean */

struct watched_item {
	enum watching_kind kind;
	const char *of; /* parameter or activation */
	bool counts;	/* this rank's values are added */
};

/* Sums over small batches: squared norms of mean gradients, and 1 / size. */
struct terms {
	double squares, inverse, n;
};

struct watch {
	int64_t every;
	const struct prepared *prepared;
	struct comm *all;
	int n;
	struct watched_item *item;
	double *values;	    /* [n][WATCH_VALUES] */
	double *largest;    /* [world][n] */
	struct terms terms; /* sums of this step so far */
	/* running means of the steps' estimates of the gradients' variance and of their squared norm */
	double scatter, signal;
	int64_t measured;
};

void watch_free(struct watch *w)
{
	if (!w)
		return;
	free(w->item);
	free(w->values);
	free(w->largest);
	free(w);
}

bool watch_due(const struct watch *w, int64_t step)
{
	return w && step % w->every == 0;
}

static int count_watched(const struct graph *model)
{
	enum watching_kind kind;
	int n = 0;

	for (int i = 0; i < model->n_tensors; i++)
		n += watching_of(model->tensors[i], &kind) != NULL;
	return n;
}

/* Allocates the watch and lists the watched tensors of the model. */
static struct watch *allocate_watch(const struct graph *model, int64_t every, int world)
{
	struct watch *w = mem_zalloc(sizeof(*w));
	const int n = count_watched(model);

	w->every = every;
	w->item = mem_array((size_t)n + 1, sizeof(*w->item));
	w->values = mem_array((size_t)n + 1, WATCH_VALUES * sizeof(*w->values));
	w->largest = mem_array((size_t)n + 1, (size_t)world * sizeof(*w->largest));
	for (int i = 0; i < model->n_tensors; i++) {
		struct watched_item *item = &w->item[w->n];

		item->of = watching_of(model->tensors[i], &item->kind);
		w->n += item->of != NULL;
	}
	return w;
}

static const struct graph *first_step_graph(const struct prepared *p)
{
	for (int i = 0; i < p->n_programs; i++)
		if (p->program[i]->kind == PROGRAM_STEP)
			return p->program[i]->graph;
	return NULL;
}

/* Returns which part of the item this rank watches: 0: none, else 1 + its place among the ranks that share the tensor.
 * Outputs belong to samples that no other rank has. */
static int64_t watched_part(const struct watch *w, const struct graph *g, const struct watched_item *item)
{
	const struct tensor *t = watching_find(g, item->kind, item->of);
	const struct comm *shards = w->prepared->opts.lane[STREAM_COMPUTE][GROUP_SHARD];

	if (!t)
		return 0;
	if (item->kind == WATCHING_OUTPUT)
		return 1 + w->all->rank;
	return t->producer->in[0]->shard.each && shards ? 1 + shards->rank : 1;
}

/* The lowest rank that has a part counts it. */
static int assign_items(struct watch *w, struct err *err)
{
	const struct graph *g = first_step_graph(w->prepared);
	struct comm *c = w->all;
	int64_t *part = mem_array((size_t)w->n + 1, (size_t)c->world * sizeof(*part));
	int rc;

	for (int i = 0; g && i < w->n; i++)
		part[(int64_t)c->rank * w->n + i] = watched_part(w, g, &w->item[i]);
	rc = w->n ? c->ops->all_gather(c, part, (int64_t)w->n * (int64_t)sizeof(*part), err) : 0;
	for (int i = 0; i < w->n; i++) {
		const int64_t own = part[(int64_t)c->rank * w->n + i];

		w->item[i].counts = own != 0;
		for (int k = 0; k < c->rank; k++)
			if (part[(int64_t)k * w->n + i] == own)
				w->item[i].counts = false;
	}
	free(part);
	return rc;
}

int watch_new(struct watch **ret, int64_t every, const struct prepared *prepared, struct comm *all, struct err *err)
{
	struct watch *w = allocate_watch(prepared->model, every, all->world);
	int rc;

	w->prepared = prepared;
	w->all = all;
	rc = assign_items(w, err);
	if (rc) {
		watch_free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

/* ---- the noise scale ---- */

int watch_micro(struct watch *w, const struct watch_step *s, int64_t samples, struct err *err)
{
	double values[WATCH_VALUES], squares = 0;
	bool any = false;
	int rc = 0;

	for (int i = 0; !rc && i < w->n; i++) {
		const struct tensor *t = w->item[i].kind != WATCHING_GRADIENT ? NULL :
			watching_find(s->program->graph, WATCHING_TERM, w->item[i].of);

		if (!t)
			continue;
		rc = prepared_get(w->prepared, t, values, sizeof(values), err);
		squares += values[WATCH_SUMSQ];
		any = true;
	}
	if (rc || !any || !samples)
		return rc;
	w->terms.squares += squares * pow((double)s->samples / (double)samples / s->loss_scale, 2);
	w->terms.inverse += 1 / (double)samples;
	w->terms.n++;
	return 0;
}

/* Estimates from one step: the squared norms at two batch sizes give the gradient's own and its variance (McCandlish et
 * al. 2018, appendix A.1). */
static void measure_noise(struct watch *w, const struct terms *all, double big, double norm)
{
	const double small = all->n / all->inverse, of_small = all->squares / all->n, of_big = norm * norm;
	const double scatter = (of_small - of_big) / (1 / small - 1 / big);
	const double signal = (big * of_big - small * of_small) / (big - small);
	double weight;

	if (!(big > small) || !isfinite(scatter) || !isfinite(signal))
		return;
	w->measured++;
	weight = 1 / fmin((double)w->measured, NOISE_MEAN_MAX);
	w->scatter += weight * (scatter - w->scatter);
	w->signal += weight * (signal - w->signal);
}

static int record_noise(struct watch *w, struct dptrack_run *run, const struct watch_step *s, struct err *err)
{
	double all[3] = { w->terms.squares, w->terms.inverse, w->terms.n };
	int rc = w->all->ops->allreduce(w->all, all, 3, DTYPE_F64, err);

	w->terms = (struct terms){ .n = 0 };
	if (rc || !(all[2] > 1))
		return rc;
	measure_noise(w, &(struct terms){ all[0], all[1], all[2] }, (double)s->samples, s->grad_norm);
	if (w->all->rank == 0 && w->scatter > 0 && w->signal > 0)
		dptrack_log(run, s->step, series_get(SERIES_train_noise_scale)->key, w->scatter / w->signal);
	return 0;
}

/* ---- tensors ---- */

/* Reads the statistics of the watched tensors and combines them over all ranks. */
static int gather_watched_values(struct watch *w, const struct graph *g, struct err *err)
{
	struct comm *c = w->all;
	double *largest = w->largest + (int64_t)c->rank * w->n;
	int rc = 0;

	memset(w->values, 0, (size_t)w->n * WATCH_VALUES * sizeof(*w->values));
	memset(w->largest, 0, (size_t)w->n * (size_t)c->world * sizeof(*w->largest));
	for (int i = 0; !rc && i < w->n; i++) {
		const struct tensor *t = w->item[i].counts ? watching_find(g, w->item[i].kind, w->item[i].of) : NULL;
		double *own = w->values + (int64_t)i * WATCH_VALUES;

		if (t)
			rc = prepared_get(w->prepared, t, own, WATCH_VALUES * sizeof(*own), err);
		largest[i] = own[WATCH_LARGEST];
	}
	if (!rc)
		rc = c->ops->allreduce(c, w->values, (int64_t)w->n * WATCH_VALUES, DTYPE_F64, err);
	if (!rc)
		rc = c->ops->all_gather(c, w->largest, (int64_t)w->n * (int64_t)sizeof(*w->largest), err);
	for (int i = 0; !rc && i < w->n; i++) {
		double *all = w->values + (int64_t)i * WATCH_VALUES;

		all[WATCH_LARGEST] = 0;
		for (int k = 0; k < c->world; k++)
			all[WATCH_LARGEST] = fmax(all[WATCH_LARGEST], w->largest[(int64_t)k * w->n + i]);
	}
	return rc;
}

static void log_tensor_value(struct dptrack_run *run, int64_t step, const char *group, const struct watched_item *item,
			     double v)
{
	char key[KEY_BYTES];

	snprintf(key, sizeof(key), "%s/%s", group, item->of);
	dptrack_log(run, step, key, v);
}

/* Records a histogram of magnitudes times `scale`, by powers of two, with a bin of zeros in front. */
static void record_histogram(struct dptrack_run *run, int64_t step, const char *key, const double *values, double scale)
{
	double edges[WATCH_BUCKETS + 2] = { 0 }, counts[WATCH_BUCKETS + 1] = { values[WATCH_ZEROS] };
	int first = 0, last = WATCH_BUCKETS - 1, bins = 1;

	while (first < WATCH_BUCKETS && !values[WATCH_BUCKET + first])
		first++;
	while (last > first && !values[WATCH_BUCKET + last])
		last--;
	edges[1] = ldexp(scale, WATCH_EXPONENT + (first < WATCH_BUCKETS ? first : 0));
	for (int k = first; k <= last && k < WATCH_BUCKETS; k++, bins++) {
		counts[bins] = values[WATCH_BUCKET + k];
		edges[bins + 1] = ldexp(scale, WATCH_EXPONENT + k + 1);
	}
	edges[bins] = fmax(edges[bins], values[WATCH_LARGEST] * scale);
	dptrack_histogram(run, step, key, edges, counts, (size_t)bins);
}

static double count_numbers(const double *values)
{
	double n = values[WATCH_ZEROS] + values[WATCH_NONFINITE];

	for (int k = 0; k < WATCH_BUCKETS; k++)
		n += values[WATCH_BUCKET + k];
	return n;
}

static const double *find_watched_values(const struct watch *w, enum watching_kind kind, const char *of)
{
	for (int i = 0; i < w->n; i++)
		if (w->item[i].kind == kind && !strcmp(w->item[i].of, of))
			return w->values + (int64_t)i * WATCH_VALUES;
	return NULL;
}

static void record_ratio(const struct watch *w, struct dptrack_run *run, int64_t step, const struct watched_item *item,
			 const double *update)
{
	const double *weight = find_watched_values(w, WATCHING_WEIGHT, item->of);

	if (weight && weight[WATCH_SUMSQ] > 0)
		log_tensor_value(run, step, "update_ratio", item, sqrt(update[WATCH_SUMSQ] / weight[WATCH_SUMSQ]));
}

static void record_watched_item(const struct watch *w, struct dptrack_run *run, const struct watch_step *s, int i)
{
	static const char *const groups[WATCHING_KINDS] = { [WATCHING_WEIGHT] = "weights",
							    [WATCHING_GRADIENT] = "gradients",
							    [WATCHING_OUTPUT] = "activations" };
	const struct watched_item *item = &w->item[i];
	const double *values = w->values + (int64_t)i * WATCH_VALUES, n = count_numbers(values);
	const double scale = item->kind == WATCHING_GRADIENT ? 1 / s->loss_scale : 1;
	char key[KEY_BYTES];

	if (item->kind == WATCHING_GRADIENT)
		log_tensor_value(run, s->step, "grad_norm", item, sqrt(values[WATCH_SUMSQ]) * scale);
	else if (item->kind == WATCHING_UPDATE)
		record_ratio(w, run, s->step, item, values);
	else if (item->kind == WATCHING_OUTPUT && n > 0)
		log_tensor_value(run, s->step, "dead_units", item, values[WATCH_ZEROS] / n);
	if (!groups[item->kind] || !(n > 0))
		return;
	snprintf(key, sizeof(key), "%s/%s", groups[item->kind], item->of);
	record_histogram(run, s->step, key, values, scale);
}

int watch_record(struct watch *w, struct dptrack_run *run, const struct watch_step *s, struct err *err)
{
	int rc = s->program ? gather_watched_values(w, s->program->graph, err) : 0;

	for (int i = 0; !rc && s->program && w->all->rank == 0 && i < w->n; i++)
		record_watched_item(w, run, s, i);
	return rc ? rc : record_noise(w, run, s, err);
}
