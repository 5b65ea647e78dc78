/* media.c: reads rows of media; contents are read one at a time, or all for an export. */
#include "web/store/read/media.h"

#include <string.h>

#include "web/store/base/list.h"
#include "web/store/base/no_memory.h"
#include "web/store/db/readers.h"
#include "web/store/points/hide.h"

#define PART_ROWS 32

static bool is_media_hidden(int64_t hide_step, int64_t hide_epoch, const char *key, int64_t step)
{
	struct hide h = { hide_step, hide_epoch };

	return hide_has(hide_from(&h, key), step);
}

/* Each row is one step of a key in one segment. */
static int add_media_key(struct media_list *l, struct db_rows *q, struct arena *a, struct err *err)
{
	const char *name = db_str(q, COL_media_keys_name);
	enum media_kind kind = (enum media_kind)db_i32(q, COL_media_keys_kind);
	int64_t step = db_i64(q, COL_media_keys_step), number = db_i64(q, COL_media_keys_number);
	struct media_key *last = l->key_count ? &l->keys[l->key_count - 1] : NULL;

	if (is_media_hidden(db_i64(q, COL_media_keys_hide_step), db_i64(q, COL_media_keys_hide_epoch), name, step))
		return 0;
	if (!last || strcmp(last->key, name) || last->kind != kind) {
		l->keys = list_room(a, l->keys, l->key_count, sizeof *l->keys);
		if (!l->keys)
			return no_memory(err);
		last = &l->keys[l->key_count++];
		*last = (struct media_key){ db_text(a, q, COL_media_keys_name), kind, 0, step, step };
	}
	last->count += number;
	last->first_step = step < last->first_step ? step : last->first_step;
	last->last_step = step > last->last_step ? step : last->last_step;
	return 0;
}

static int load_media_keys(struct db *d, int64_t id, struct arena *a, struct media_list *l, struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, DB_media_keys, err, "i", id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = add_media_key(l, q, a, err);
		if (rc)
			db_stop(q);
	}
	return rc;
}

static struct event_span copy_media_bytes(struct arena *a, const void *bytes, size_t n)
{
	unsigned char *to = arena_alloc(a, n ? n : 1);

	if (to && n)
		memcpy(to, bytes, n);
	return (struct event_span){ to, to ? to + n : NULL };
}

static int add_media_item(struct media_list *l, struct db_rows *q, struct arena *a, struct err *err)
{
	struct stored_media *m;

	l->items = list_room(a, l->items, l->count, sizeof *l->items);
	if (!l->items)
		return no_memory(err);
	m = &l->items[l->count++];
	*m = (struct stored_media){
		.id = db_i64(q, COL_media_of_run_id), .key = db_text(a, q, COL_media_of_run_name),
		.digest = db_text(a, q, COL_media_of_run_digest),
		.kind = (enum media_kind)db_i32(q, COL_media_of_run_kind), .rank = db_i32(q, COL_media_of_run_rank),
		.segment = db_i32(q, COL_media_of_run_segment), .step = db_i64(q, COL_media_of_run_step),
		.wall_time = db_f64(q, COL_media_of_run_wall_time), .type = db_text(a, q, COL_media_of_run_type),
		.bytes = db_i64(q, COL_media_of_run_size), .width = db_i64(q, COL_media_of_run_width),
		.height = db_i64(q, COL_media_of_run_height),
	};
	return 0;
}

struct media_rows {
	struct db *d;
	struct db_rows *q;
	const struct media_opts *o;
	struct arena *a;
};

/* Reads the rows of a started query that are not hidden, at most o->limit. */
static int read_media_rows(const struct media_rows *r, struct media_list *l, struct err *err)
{
	const struct media_opts *o = r->o;
	struct db_rows *q = r->q;
	int rc = 0;

	while (!rc && l->count < o->limit && (rc = db_next(r->d, q, err)) > 0) {
		rc = 0;
		if (o->hidden ||
		    !is_media_hidden(db_i64(q, COL_media_of_run_hide_step), db_i64(q, COL_media_of_run_hide_epoch),
				     db_str(q, COL_media_of_run_name), db_i64(q, COL_media_of_run_step)))
			rc = add_media_item(l, q, r->a, err);
		if (rc || l->count == o->limit) {
			db_stop(q);
			return rc;
		}
	}
	return rc;
}

int media_of_run(struct store *s, const struct media_opts *o, struct arena *a, struct media_list *ret, struct err *err)
{
	struct media_list l = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, o->run, &id, err);

	if (rc)
		return rc;
	rc = load_media_keys(d, id, a, &l, err);
	if (!rc)
		rc = db_start(d, &q, DB_media_of_run, err, "itiix", id, o->key, o->from, o->to,
			      o->kind ? (int64_t)o->kind : INT64_MIN);
	if (!rc)
		rc = read_media_rows(&(struct media_rows){ d, q, o, a }, &l, err);
	readers_give(s, d);
	if (!rc)
		*ret = l;
	return rc;
}

int media_get(struct store *s, const struct media_ref *of, struct arena *a, struct event_span *ret, struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, of->run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_media_content, err, "it", id, of->digest);
	if (!rc && (rc = db_next(d, q, err)) > 0) {
		*ret = copy_media_bytes(a, db_blob(q, COL_media_content_bytes), db_bytes(q, COL_media_content_bytes));
		db_stop(q);
		rc = ret->at ? 0 : no_memory(err);
	} else if (!rc) {
		rc = err_set(err, ERR_NOENT, "the run has no media with that digest");
	}
	readers_give(s, d);
	return rc;
}

static int add_part_item(struct media_list *l, struct db_rows *q, struct arena *a, struct err *err)
{
	struct stored_media *m;

	l->items = list_room(a, l->items, l->count, sizeof *l->items);
	if (!l->items)
		return no_memory(err);
	m = &l->items[l->count++];
	*m = (struct stored_media){
		.id = db_i64(q, COL_media_of_part_id),
		.key = db_text(a, q, COL_media_of_part_name),
		.step = db_i64(q, COL_media_of_part_step),
		.wall_time = db_f64(q, COL_media_of_part_wall_time),
		.content =
			copy_media_bytes(a, db_blob(q, COL_media_of_part_bytes), db_bytes(q, COL_media_of_part_bytes)),
	};
	return m->content.at ? 0 : no_memory(err);
}

int media_of_part(struct store *s, const struct media_part *part, struct arena *a, struct media_list *ret,
		  struct err *err)
{
	struct media_list l = { 0 };
	struct db_rows *q;
	struct db *d;
	int64_t id;
	int rc = readers_take_run(s, &d, part->run, &id, err);

	if (rc)
		return rc;
	rc = db_start(d, &q, DB_media_of_part, err, "iiiii", id, (int64_t)part->rank, (int64_t)part->segment,
		      part->after, INT64_C(0) + PART_ROWS);
	while (!rc && (rc = db_next(d, q, err)) > 0) {
		rc = add_part_item(&l, q, a, err);
		if (rc)
			db_stop(q);
	}
	readers_give(s, d);
	if (!rc)
		*ret = l;
	return rc;
}
