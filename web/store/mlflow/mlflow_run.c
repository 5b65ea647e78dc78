/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow_run.c: creates runs with a given start time and writes to active ones, by MLflow's rules. Points that are
 * stored already are found by the series' summary when they arrive in order, else in the chunks that overlap them and
 * in the log. */
#include <math.h>
#include <stdlib.h>

#include "tracker/mem/mem.h"
#include "web/store/mlflow/mlflow_inside.h"
#include "web/store/points/scan.h"
#include "web/store/write/apply.h"
#include "web/store/write/segment.h"

/* --- repeated points ------------------------------------------------------------------------------------------ */

/* Finds repeated points. For points in order the summary of the series decides; else the
 * overlapping chunks and the run's part of the log are searched. */

/* A series of the batch with a point that is not after all stored ones. */
struct repeat_suspect {
	struct intake_series *s;
	int64_t min_step, max_step;
	double min_time, max_time;
};

struct stored_series {
	int64_t id, hide;
	uint32_t suspect;
};

struct repeat {
	struct state *st;
	struct state_run *r;
	struct repeat_suspect *suspects;
	size_t suspect_count;
	struct stored_series *series;
	size_t series_count, series_cap;
	struct map *points; /* struct name -> struct repeat_seen */
	const struct stored_series *now;
	struct err *err;
};

struct name {
	int64_t step;
	uint64_t time, value;
	uint64_t suspect;
};

struct repeat_seen {
	bool stored, given;
};

static uint64_t value_bits(double v)
{
	uint64_t u;

	v = isnan(v) ? NAN : v == 0 ? 0.0 : v;
	memcpy(&u, &v, sizeof(u));
	return u;
}

static struct name point_name(uint32_t suspect, const struct sum_point *p)
{
	return (struct name){
		.step = p->step, .time = value_bits(p->time), .value = value_bits(p->value), .suspect = suspect
	};
}

/* Returns true if each point is after the previous one, and the first after all stored ones. */
static bool extends_series(const struct sum *stored, const struct intake_series *s)
{
	struct sum_point last = stored->last;
	bool any = stored->count > 0;
	size_t i;

	for (i = 0; i < s->count; i++) {
		if (any && sum_order(&s->points[i], &last) <= 0)
			return false;
		last = s->points[i];
		any = true;
	}
	return true;
}

static void add_suspect(struct repeat *p, struct intake_series *s)
{
	struct repeat_suspect *x = &p->suspects[p->suspect_count++];
	size_t i;

	*x = (struct repeat_suspect){
		.s = s, .min_step = INT64_MAX, .max_step = INT64_MIN, .min_time = INFINITY, .max_time = -INFINITY
	};
	for (i = 0; i < s->count; i++) {
		x->min_step = s->points[i].step < x->min_step ? s->points[i].step : x->min_step;
		x->max_step = s->points[i].step > x->max_step ? s->points[i].step : x->max_step;
		x->min_time = fmin(x->min_time, s->points[i].time);
		x->max_time = fmax(x->max_time, s->points[i].time);
	}
}

static int find_suspects(struct repeat *p, struct intake *in)
{
	struct state_metric *m;
	int64_t key;
	size_t i;
	int rc = 0;

	p->suspects = mem_array(in->series_count + 1, sizeof(*p->suspects));
	for (i = 0; i < in->series_count && !rc; i++) {
		rc = state_key(p->st, in->series[i].key, &key, p->err);
		if (!rc)
			rc = state_metric(p->st, p->r, key, &m, p->err);
		if (!rc && !extends_series(&m->sum, &in->series[i]))
			add_suspect(p, &in->series[i]);
	}
	return rc;
}

static void add_repeat_series(struct repeat *p, uint32_t suspect, struct db_rows *q)
{
	struct state_segment *seg = state_segment(p->r, db_i32(q, COL_series_of_run_segment));

	mem_push(&p->series, &p->series_count, &p->series_cap,
		 (struct stored_series){ .id = db_i64(q, COL_series_of_run_id), .suspect = suspect,
					 .hide = hide_from(seg ? &seg->hide : NULL, p->suspects[suspect].s->key) });
}

static int compare_stored_series(const void *x, const void *y)
{
	const struct stored_series *a = x, *b = y;

	return (a->id > b->id) - (a->id < b->id);
}

static int find_suspect_series(struct repeat *p)
{
	struct db *d = state_db(p->st);
	struct db_rows *q;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < p->suspect_count && !rc; i++) {
		rc = db_start(d, &q, DB_series_of_run_key, p->err, "itii", p->r->id, p->suspects[i].s->key,
			      (int64_t)STATE_RUN_LEVEL, (int64_t)STATE_RUN_LEVEL);
		while (rc >= 0 && (rc = db_next(d, q, p->err)) > 0)
			add_repeat_series(p, i, q);
	}
	if (p->series_count)
		qsort(p->series, p->series_count, sizeof(*p->series), compare_stored_series);
	return rc;
}

static void map_batch_points(struct repeat *p)
{
	uint32_t i;
	size_t k;

	p->points = map_new(sizeof(struct repeat_seen));
	for (i = 0; i < p->suspect_count; i++)
		for (k = 0; k < p->suspects[i].s->count; k++) {
			struct name name = point_name(i, &p->suspects[i].s->points[k]);

			map_put(p->points, &name, sizeof(name));
		}
}

static void mark_repeated_points(struct repeat *p, const struct stored_series *s, const struct sum_point *points,
				 size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		struct name name = point_name(s->suspect, &points[i]);
		struct repeat_seen *seen =
			hide_has(s->hide, points[i].step) ? NULL : map_get(p->points, &name, sizeof(name));

		if (seen)
			seen->stored = true;
	}
}

static int mark_log_points(void *arg, size_t at, const struct sum_point *points, size_t n, struct err *err)
{
	struct repeat *p = arg;

	(void)err;
	mark_repeated_points(p, &p->series[at], points, n);
	return 0;
}

static int search_log(struct repeat *p)
{
	int64_t *ids = mem_array(p->series_count + 1, sizeof(*ids));
	size_t i;
	int rc;

	for (i = 0; i < p->series_count; i++)
		ids[i] = p->series[i].id;
	rc = scan_log(state_db(p->st), &(struct series_scan){ p->r->id, ids, p->series_count, mark_log_points, p },
		      p->err);
	free(ids);
	return rc;
}

static int mark_chunk_points(void *arg, const struct chunk *c, struct err *err)
{
	struct repeat *p = arg;
	struct sum_point room[CHUNK_POINTS];

	if (chunk_points(c, room))
		return scan_damaged(err, "a chunk of series", p->now->id);
	mark_repeated_points(p, p->now, room, c->points);
	return 0;
}

static int search_chunks(struct repeat *p)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < p->series_count && !rc; i++) {
		const struct repeat_suspect *x = &p->suspects[p->series[i].suspect];
		struct scan_window w = { x->min_step, x->max_step, x->min_time, x->max_time, p->series[i].id };

		p->now = &p->series[i];
		rc = scan_series_window(state_db(p->st), &w, mark_chunk_points, p, p->err);
	}
	return rc;
}

/* Removes stored points and repeats, and then empty series. */
static void remove_repeated_points(struct repeat *p, struct intake *in)
{
	uint32_t i;
	size_t k, n;

	for (i = 0; i < p->suspect_count; i++) {
		struct intake_series *s = p->suspects[i].s;

		for (k = 0, n = 0; k < s->count; k++) {
			struct name name = point_name(i, &s->points[k]);
			struct repeat_seen *seen = map_get(p->points, &name, sizeof(name));

			if (seen->stored || seen->given)
				continue;
			seen->given = true;
			s->points[n++] = s->points[k];
		}
		in->point_count -= s->count - n;
		s->count = n;
	}
	for (k = 0, n = 0; k < in->series_count; k++)
		if (in->series[k].count)
			in->series[n++] = in->series[k];
	in->series_count = n;
}

/* Removes repeated run-level points from in, also repeats inside the batch. */
static int mlflow_repeat_drop(struct state *st, struct state_run *r, struct intake *in, struct err *err)
{
	struct repeat p = { .st = st, .r = r, .err = err };
	int rc = find_suspects(&p, in);

	if (!rc && p.suspect_count) {
		rc = find_suspect_series(&p);
		map_batch_points(&p);
		if (!rc)
			rc = search_log(&p);
		if (!rc)
			rc = search_chunks(&p);
		if (!rc)
			remove_repeated_points(&p, in);
	}
	map_free(p.points);
	free(p.suspects);
	free(p.series);
	return rc;
}

#define NAME_TAG "mlflow.runName"

static int make_mlflow_run(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_new_run n = { .uuid = c->res.id,
				   .experiment_id = op->experiment,
				   .name = op->name,
				   .status = "running",
				   .start_ms = op->start_ms,
				   .user = op->user };
	struct state_run *r;
	int rc = mlflow_experiment_need(st, c, op->experiment, err);

	if (rc <= 0)
		return rc;
	apply_draw_id(c->res.id);
	rc = state_run_add(st, &n, &r, err);
	if (!rc)
		rc = change_about_run(st, c, r, err);
	if (!rc)
		rc = segment_open(st, r, &(struct segment_open){ .start_ms = op->start_ms, .status = "running" }, err);
	return rc ? rc : apply_tags(st, r, op->tags, op->tag_count, err);
}

const struct change_ops mlflow_run_new = { .name = "mlflow_run_new",
					   .makes_run = true,
					   .judges = true,
					   .action = "create",
					   .object = "run",
					   .copy = mlflow_copy,
					   .apply = make_mlflow_run };

/* Lists params that are stored with another value; values: the stored ones. */
static void list_contradictions(const struct state_run *r, const struct mlflow_op *op, const char *const *values,
				struct buf *list)
{
	size_t i;

	for (i = 0; i < op->param_count; i++) {
		const struct ingest_kv *kv = &op->params[i];

		if (!values[i] || !strcmp(values[i], kv->value))
			continue;
		if (op->single)
			buf_addf(list,
				 "Param with key='%.100s' was already logged with value='%.100s' for run ID='%s'. "
				 "Attempted logging new value '%.100s'.",
				 kv->key, values[i], r->uuid, kv->value);
		else
			buf_addf(list, "%s{'key': '%.100s', 'old_value': '%.100s', 'new_value': '%.100s'}",
				 list->len ? ", " : "", kv->key, values[i], kv->value);
	}
}

static int check_params(struct state *st, struct change *c, struct state_run *r, const struct mlflow_op *op,
			struct err *err)
{
	struct params_lookup l = { .run = r, .kv = op->params, .count = op->param_count, .arena = c->in.arena };
	struct buf list;
	int rc = params_find(st, &l, err);

	buf_init(&list, 1 << 20);
	if (!rc)
		list_contradictions(r, op, l.values, &list);
	if (!rc && list.len && op->single)
		change_refuse(c, ERR_USAGE, "Changing param values is not allowed. %s", list.data);
	else if (!rc && list.len)
		change_refuse(c, ERR_USAGE,
			      "Changing param values is not allowed. Params were already logged='[%.380s]' for "
			      "run ID='%s'.",
			      list.data, r->uuid);
	rc = rc ? rc : !list.len;
	buf_done(&list);
	return rc;
}

static int put_mlflow_points(struct state *st, struct change *c, struct state_run *r, struct err *err)
{
	struct apply_points a = { .rank = 0, .segment = r->segment };
	int rc = c->in.point_count ? apply_expect(st, r, &a, &c->in, err) : 0;

	if (!rc && c->in.point_count)
		rc = mlflow_repeat_drop(st, r, &c->in, err);
	c->res.accepted = c->in.point_count;
	if (!rc)
		rc = apply_points(st, r, &a, &c->in, err);
	return rc ? rc : mlflow_model_points(st, c, err);
}

static const char *find_run_name_tag(const struct mlflow_op *op)
{
	const char *name = NULL;
	size_t i;

	for (i = 0; i < op->tag_count; i++)
		if (!strcmp(op->tags[i].key, NAME_TAG))
			name = op->tags[i].value;
	return name;
}

/* The name of a run is also stored as a tag; both are kept equal. */
static int put_batch_rest(struct state *st, struct state_run *r, const struct mlflow_op *op, struct err *err)
{
	const struct ingest_kv named = { NAME_TAG, op->name };
	const char *name = op->name ? op->name : find_run_name_tag(op);
	struct ingest_op patch = {
		.name = name,
		.state = { .status = op->status, .end_ms = op->end_ms, .end_kept = true },
	};
	int rc = apply_tags(st, r, op->tags, op->tag_count, err);

	if (!rc && op->name)
		rc = apply_tags(st, r, &named, 1, err);
	if (!rc && (name || op->status || op->end_ms != INGEST_NO_TIME))
		rc = apply_patch(st, r, &patch, err);
	return rc;
}

/* What the program records (points, params, its status) has no entry; a new name and tags have one. */
static int describe_batch(struct state *st, struct change *c, const struct state_run *r, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	const char *name = op->name ? op->name : find_run_name_tag(op);
	bool renames = name && strcmp(name, r->name);
	int rc;

	c->about.action = renames ? "rename" : op->tag_count ? "tag" : NULL;
	if (!c->about.action)
		return 0;
	c->about.object = "run";
	rc = change_about_run(st, c, r, err);
	c->about.detail = change_keys(c->in.arena, op->tags, op->tag_count);
	if (renames) {
		c->about.detail = arena_printf(c->in.arena, "was %s%s%s", r->name, op->tag_count ? ", tags " : "",
					       c->about.detail);
		c->about.name = name;
	}
	return rc;
}

static int write_mlflow_batch(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_run *r;
	int rc = mlflow_run_need(st, c, &r, err);

	if (rc > 0 && change_awaits_points(c, r))
		return 0;
	if (rc > 0 && op->param_count)
		rc = check_params(st, c, r, op, err);
	if (rc <= 0)
		return rc;
	rc = describe_batch(st, c, r, err);
	if (!rc)
		rc = params_add(st, r, op->params, op->param_count, err);
	if (!rc)
		rc = put_mlflow_points(st, c, r, err);
	return rc ? rc : put_batch_rest(st, r, op, err);
}

const struct change_ops mlflow_run_write = { .name = "mlflow_run_write",
					     .judges = true,
					     .copy = mlflow_copy,
					     .decode = mlflow_decode_points,
					     .apply = write_mlflow_batch };

static int untag_mlflow_run(struct state *st, struct change *c, struct err *err)
{
	const struct mlflow_op *op = c->op.more;
	struct state_run *r;
	int rc = mlflow_run_need(st, c, &r, err);

	if (rc <= 0)
		return rc;
	c->about.detail = op->name;
	rc = apply_untag(st, r, op->name, err);
	return rc ? rc < 0 ? rc : 0
		  : change_refuse(c, ERR_NOENT, "No tag with name: %.250s in run with id %s", op->name, r->uuid);
}

CHANGE_AUDITED(mlflow_run_untag, mlflow_copy, untag_mlflow_run, "untag", "run");
