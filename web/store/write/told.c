/* told.c: console lines are numbered from 0 per rank and segment, in order of arrival. */
#include "web/store/write/told.h"

#include "tracker/base/sha256.h"
#include "tracker/event/event_media.h"

static int put_console(struct state *st, const struct state_run *r, const struct state_writer *w,
		       const struct intake_item *it, struct err *err)
{
	struct db *d = state_db(st);
	int64_t first = 0;
	int rc = db_int(d, &first, DB_console_end, err, "iii", r->id, (int64_t)w->rank, (int64_t)w->segment);

	if (rc < 0)
		return rc;
	return db_run(d, DB_console_add, err, "iiiiiib", r->id, (int64_t)w->rank, (int64_t)w->segment, first, it->count,
		      it->time_ms, it->bytes, it->len);
}

/* Finds the row of a content, or adds it. */
static int find_or_add_content(struct db *d, const struct told_media *t, int64_t *ret, struct err *err)
{
	const unsigned char *bytes = t->bytes;
	struct media m;
	size_t file;
	int rc = db_int(d, ret, DB_content_find, err, "t", t->digest);

	if (rc)
		return rc < 0 ? rc : 0;
	if (media_read((struct event_span){ bytes, bytes + t->len }, &m))
		return err_set(err, ERR_DAMAGED, "store: a content that was read cannot be read again");
	file = (size_t)(m.bytes.end - m.bytes.at);
	rc = db_run(d, DB_content_add, err, "ttiiib", t->digest, media_type(&m), (int64_t)(file ? file : t->len),
		    (int64_t)(m.width & INT32_MAX), (int64_t)(m.height & INT32_MAX), t->bytes, t->len);
	*ret = db_last_id(d);
	return rc;
}

int told_media(struct state *st, const struct state_run *r, const struct told_media *m, struct err *err)
{
	struct told_media known = *m;
	char digest[65];
	int64_t key, content;
	int rc = state_key(st, m->key, &key, err);

	if (!m->digest) {
		sha256_hex(m->bytes, m->len, digest);
		known.digest = digest;
	}
	if (!rc)
		rc = find_or_add_content(state_db(st), &known, &content, err);
	return rc ? rc
		  : db_run(state_db(st), DB_media_add, err, "iiiiiidi", r->id, key, m->kind, (int64_t)m->rank,
			   (int64_t)m->segment, m->step, m->wall_time, content);
}

static int put_media(struct state *st, const struct state_run *r, const struct state_writer *w,
		     const struct intake_item *it, struct err *err)
{
	int rank = it->rank != EVENT_RANK_DEFAULT ? it->rank : w->rank > 0 ? w->rank : EVENT_RANK_RUN;

	return told_media(st, r, &(struct told_media){ .key = it->key, .kind = it->count, .rank = rank,
						       .segment = w->segment, .step = it->step,
						       .wall_time = it->wall_time, .bytes = it->bytes,
						       .len = it->len, .digest = it->digest }, err);
}

int told_put(struct state *st, const struct state_run *r, const struct state_writer *w, const struct intake_item *it,
	     struct err *err)
{
	struct db *d = state_db(st);

	if (it->kind == EVENT_CONSOLE)
		return put_console(st, r, w, it, err);
	if (it->kind == EVENT_OTHER)
		return put_media(st, r, w, it, err);
	if (it->kind == EVENT_CODE)
		return db_run(d, DB_code_put, err, "iitt", r->id, (int64_t)w->segment, it->key, it->text);
	if (it->kind == EVENT_FILE)
		return db_run(d, DB_file_put, err, "itit", r->id, it->key, it->count, it->text);
	return db_run(d, DB_told_add, err, "iiiiiitt", r->id, (int64_t)w->rank, (int64_t)w->segment, it->step,
		      it->time_ms, it->count, it->key, it->text);
}
