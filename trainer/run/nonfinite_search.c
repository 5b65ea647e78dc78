/* SPDX-License-Identifier: Apache-2.0 */
/* nonfinite_search.c: repeats a step while every rank checks its own nodes; the lowest rank whose non-finite value did
 * not come from another rank is named. */
#include "trainer/run/nonfinite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"

/* Skipped steps in a row before the run fails. */
#define IN_VAIN_MAX 10

struct nonfinite_finding { /* the finding of one rank, as sent to the others */
	int kind;	   /* enum nonfinite_kind */
	char text[500];
};

/* Returns the index in the set of a sample of this rank's micro-batch; -1: unknown. */
static int64_t sample_number(const struct engine *e, const struct step_result *r, const struct nonfinite *f)
{
	const struct sampler *s = &e->train_schedule.train;
	const struct range own = sampler_micro(s, r->in_epoch - 1, rank_share(&e->rank), 0);

	if (f->sample < 0 || own.begin + f->sample >= own.end || sampler_micros(s, r->in_epoch - 1) > 1)
		return -1;
	return train_schedule_sample(&e->train_schedule, r->epoch - 1, own.begin + f->sample);
}

static void describe_sample(const struct engine *e, const struct step_result *r, const struct nonfinite *f, char *text,
			    size_t n)
{
	const int64_t number = sample_number(e, r, f);

	text[0] = '\0';
	if (number >= 0)
		snprintf(text, n, ", in sample %lld of its batch (number %lld of the set)", (long long)f->sample,
			 (long long)number);
	else if (f->sample >= 0)
		snprintf(text, n, ", in sample %lld of micro-batch %lld", (long long)f->sample, (long long)f->micro);
}

static void describe_finding(const struct engine *e, const struct step_result *r, const struct nonfinite *f,
			     struct nonfinite_finding *ret)
{
	const char *what = f->is_nan ? "nan" : "an infinite number";
	char sample[120];

	ret->kind = f->kind;
	describe_sample(e, r, f, sample, sizeof(sample));
	if (f->kind == NONFINITE_READ)
		snprintf(ret->text, sizeof(ret->text), "%s hold%s %s on rank %d%s, which %s (%s, %s) reads first",
			 f->tensor, f->tensor[strlen(f->tensor) - 1] == 's' ? "" : "s", what, e->rank.context->rank,
			 sample, f->node, f->op, f->backward ? "backward" : "forward");
	else
		snprintf(ret->text, sizeof(ret->text),
			 "%s (%s, %s) was the first to make %s of finite numbers, on "
			 "rank %d%s",
			 f->node, f->op, f->backward ? "backward" : "forward", what, e->rank.context->rank, sample);
}

/* Takes the finding of the lowest rank that made or read the value itself; *ret stays empty when there is none. */
static int gather_findings(const struct engine *e, const struct nonfinite_finding *own, char *ret, size_t n,
			   struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	struct nonfinite_finding *all = mem_array((size_t)c->world, sizeof(*all));
	int rc;

	all[c->rank] = *own;
	rc = c->ops->all_gather(c, all, (int64_t)sizeof(*all), err);
	for (int k = c->world - 1; !rc && k >= 0; k--)
		if (all[k].kind == NONFINITE_MADE || all[k].kind == NONFINITE_READ)
			snprintf(ret, n, "%s", all[k].text);
	free(all);
	return rc;
}

/* Repeats the step with its batch loaded again. */
static int rerun_step(struct engine *e, const struct step_result *r, struct nonfinite_watch *w, struct err *err)
{
	struct step_result ignored;
	int rc;

	loader_close(e->loader);
	e->loader = NULL;
	e->step = r->step - 1;
	rc = engine_begin(e, err);
	e->suspects = w;
	if (!rc)
		rc = step_run(e, &ignored, err);
	e->suspects = NULL;
	return rc < 0 ? rc : 0;
}

/* Describes the node that made the first non-finite value; "": unknown, as all values are finite this time. */
static int find_nonfinite_node(struct engine *e, const struct step_result *r, char *ret, size_t n, struct err *err)
{
	struct nonfinite_watch *w;
	struct nonfinite_finding own = { .kind = NONFINITE_NONE };
	int rc;

	ret[0] = '\0';
	w = nonfinite_new(&e->prepared);
	rc = rerun_step(e, r, w, err);
	if (!rc && nonfinite_first(w)->kind != NONFINITE_NONE)
		describe_finding(e, r, nonfinite_first(w), &own);
	if (!rc)
		rc = gather_findings(e, &own, ret, n, err);
	nonfinite_free(w);
	return rc;
}

/* Finds the lowest rank whose own loss is not finite; -1: none, or the loss is on another stage. */
static int rank_of_loss(const struct engine *e, const struct step_result *r, int *ret, struct err *err)
{
	struct comm *c = rank_comm(&e->rank);
	double *loss = mem_array((size_t)c->world, sizeof(*loss));
	int rc;

	*ret = -1;
	loss[c->rank] = r->own_sum;
	rc = c->ops->all_gather(c, loss, sizeof(*loss), err);
	for (int k = c->world - 1; !rc && k >= 0; k--)
		*ret = isfinite(loss[k]) ? *ret : k;
	free(loss);
	return rc;
}

static int explain_loss(struct engine *e, const struct step_result *r, struct err *err)
{
	char who[500];
	int rank, rc = rank_of_loss(e, r, &rank, err);

	if (!rc)
		rc = find_nonfinite_node(e, r, who, sizeof(who), err);
	if (rc)
		return rc;
	return err_set(
		err, ERR_CANCELED,
		"the loss is %s at step %lld, in the samples of rank %d of batch %lld of epoch %lld; the step "
		"did not change the weights.%s%s%s Try a lower --lr or a warm-up, and check the data for values that "
		"are not finite",
		isnan(r->loss) ? "nan" : "infinite", (long long)r->step, rank, (long long)r->in_epoch,
		(long long)r->epoch, *who ? " In a repeat of the step, " : "", who, *who ? "." : "");
}

static int explain_gradients(struct engine *e, const struct step_result *r, struct err *err)
{
	char who[500];
	int rc = find_nonfinite_node(e, r, who, sizeof(who), err);

	if (rc)
		return rc;
	return err_set(err, ERR_CANCELED,
		       "the gradients were not finite in %lld steps in a row, the last of them step %lld (epoch %lld), "
		       "loss %g; they did not change the weights.%s%s%s Try a lower --lr, --clip-grad-norm or another "
		       "--precision",
		       (long long)r->in_a_row, (long long)r->step, (long long)r->epoch, r->loss,
		       *who ? " In a repeat of the step, " : "", who, *who ? "." : "");
}

/* Counts the skipped steps in a row that a lower loss scale would not have repaired: their loss itself is not
 * finite, or their scale was below 1 already. */
static int64_t count_in_vain(struct engine *e, const struct step_result *r)
{
	if (!e->prepared.opts.optimizer.scaling)
		return r->in_a_row;
	if (r->in_a_row == 0)
		e->in_vain = 0;
	else if (!isfinite(r->loss) || r->loss_scale < 1)
		e->in_vain++;
	return e->in_vain;
}

int nonfinite_search_check(struct engine *e, const struct step_result *r, struct err *err)
{
	const bool scaling = e->prepared.opts.optimizer.scaling, ends = count_in_vain(e, r) >= IN_VAIN_MAX;

	if (!isfinite(r->loss) && (ends || !scaling))
		return explain_loss(e, r, err);
	return ends ? explain_gradients(e, r, err) : 0;
}
