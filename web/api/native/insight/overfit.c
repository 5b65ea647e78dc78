/* overfit.c: feeds the validation losses of a run, then its training losses, to tracker/insight. */
#include "web/api/native/insight/overfit.h"

#include "web/api/native/insight/timing.h"

enum { OVERFIT_ROWS = 512 };

struct loss_reader {
	struct call *c;
	const struct query_run *run;
	struct learning *l;
	int64_t scale; /* optimiser steps per step of the series */
	bool validation;
};

static int add_loss_point(const struct loss_reader *r, const struct points_row *row, struct err *err)
{
	if (r->validation)
		return learning_validation(r->l, row->step * r->scale, row->value, err);
	learning_training(r->l, row->step * r->scale, row->value);
	return 0;
}

static int read_loss_series(const struct loss_reader *r, const char *key, struct err *err)
{
	const struct points_sel sel = { .runs = &r->run->id, .run_count = 1, .keys = &key, .key_count = 1, .rank = -1,
					.from_step = INT64_MIN, .to_step = INT64_MAX };
	struct points_row *rows = arena_array(r->c->arena, OVERFIT_ROWS, sizeof(*rows));
	struct points_cursor *cursor;
	size_t n = 1;
	int rc = rows ? points_open(&cursor, r->c->api->store, &sel, NULL, err)
		: err_set(err, ERR_NOMEM, "out of memory");

	if (rc)
		return rc;
	while (n && !(rc = points_next(cursor, rows, OVERFIT_ROWS, &n, err)))
		for (size_t i = 0; !rc && i < n; i++)
			rc = add_loss_point(r, &rows[i], err);
	points_close(cursor);
	return rc;
}

int overfit_read(struct call *c, const struct query_run *run, struct learning_overfit *ret, bool *ret_found,
		 struct err *err)
{
	struct loss_reader r = { .c = c, .run = run, .scale = 1, .validation = true };
	const struct learning_series *of;
	unsigned seen = 0;
	int rc;

	*ret_found = false;
	for (size_t i = 0; i < run->metric_count; i++)
		learning_see(&seen, run->metrics[i].key);
	of = learning_pick(seen);
	if (!of)
		return 0;
	if (of->by_epoch)
		r.scale = (int64_t)timing_param(run, "steps_per_epoch", 1);
	rc = learning_new(&r.l, err);
	if (!rc)
		rc = read_loss_series(&r, of->validation, err);
	r.validation = false;
	if (!rc)
		rc = read_loss_series(&r, of->training, err);
	if (!rc)
		*ret_found = learning_overfits(r.l, ret);
	learning_free(r.l);
	return rc;
}
