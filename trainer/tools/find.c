/* find.c: reads learning rates and losses from a run's journals through dptrack.h; tracker/insight selects the rate.
 * Knows no model and no engine. */
#include "trainer/tools/find.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/insight/tuning.h"
#include "trainer/tools/find_batch.h"
#include "trainer/tools/real.h"
#include "trainer/tools/recorded.h"

#define TEXT_MAX 4096

struct lr_loss_curve { /* by step */
	double lr[LR_RANGE_STEPS_MAX + 1], loss[LR_RANGE_STEPS_MAX + 1];
};

static void keep_lr_and_loss(void *user, const struct dptrack_point *p)
{
	struct lr_loss_curve *c = user;

	if (p->rank >= 0 || p->step < 1 || p->step > LR_RANGE_STEPS_MAX)
		return;
	if (!strcmp(p->key, "train/lr"))
		c->lr[p->step] = p->value;
	else if (!strcmp(p->key, "train/loss"))
		c->loss[p->step] = p->value;
}

static int read_lr_curve(const char *dir, struct lr_range_test *ret, struct err *err)
{
	struct lr_loss_curve *c = calloc(1, sizeof(*c));
	const struct dptrack_reader reader = { c, NULL, keep_lr_and_loss, NULL, { NULL } };
	struct dptrack_error error = { 0, "" };
	int rc = 0;

	if (!c)
		return err_set(err, ERR_NOMEM, "out of memory: losses by learning rate");
	if (dptrack_read(dir, &reader, &error))
		rc = err_set(err, ERR_IO, "%s", error.text);
	for (int step = 1; !rc && step <= LR_RANGE_STEPS_MAX && c->lr[step] > 0; step++)
		if (lr_range_add(ret, c->lr[step], c->loss[step]))
			break;
	free(c);
	return rc;
}

static void print_lr_json(const struct lr_range_test *r, const char *sentence)
{
	json_t *o = json_object(), *curve = json_array();
	struct lr_range_answer a;
	const bool found = lr_range_answer(r, &a);

	json_object_set_new(o, "lr", real_or_null(found ? a.lr : NAN));
	json_object_set_new(o, "lowest", real_or_null(found ? a.lowest : NAN));
	json_object_set_new(o, "steepest", real_or_null(found ? a.steepest : NAN));
	json_object_set_new(o, "exploded", real_or_null(r->exploded > 0 ? r->exploded : NAN));
	json_object_set_new(o, "sentence", json_string(sentence));
	for (int i = 0; i < r->n; i++)
		json_array_append_new(curve, json_pack("{s:f, s:f}", "lr", r->lr[i], "loss", r->loss[i]));
	json_object_set_new(o, "curve", curve);
	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
	putchar('\n');
	json_decref(o);
}

static int print_lr_answer(const struct job *job, const char *dir, const struct lr_range_test *r, struct err *err)
{
	struct buf text;
	int rc = 0;

	buf_init(&text, TEXT_MAX);
	lr_range_sentence(&text, r);
	buf_addc(&text, '\0');
	if (buf_failed(&text))
		rc = err_set(err, ERR_NOMEM, "out of memory: the answer");
	else if (job->cfg->json)
		print_lr_json(r, text.data);
	else
		printf("%s\n%d steps, recorded in %s\n", text.data, r->n, dir);
	buf_done(&text);
	return rc || !fflush(stdout) ? rc : err_set(err, ERR_IO, "cannot write to stdout");
}

static int find_lr(const struct job *job, const char *dir, struct err *err)
{
	struct lr_range_test *r = calloc(1, sizeof(*r));
	int rc = r ? read_lr_curve(dir, r, err) : err_set(err, ERR_NOMEM, "out of memory: the answer");

	if (!rc)
		rc = print_lr_answer(job, dir, r, err);
	free(r);
	return rc;
}

int find_main(const struct job *job, const char *run_id, struct err *err)
{
	struct dptrack_found found;
	int rc = recorded_run(job, run_id, &found, err);

	if (rc)
		return rc;
	return config_finds(job->cfg, "batch") ? find_batch(job, found.dir, err) : find_lr(job, found.dir, err);
}
