/* told.c: lines are numbered from 0 in each rank's part of a segment, as they come. */
#include "web/store/write/told.h"

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

int told_put(struct state *st, const struct state_run *r, const struct state_writer *w, const struct intake_item *it,
	     struct err *err)
{
	struct db *d = state_db(st);

	if (it->kind == EVENT_CONSOLE)
		return put_console(st, r, w, it, err);
	if (it->kind == EVENT_CODE)
		return db_run(d, DB_code_put, err, "iitt", r->id, (int64_t)w->segment, it->key, it->text);
	return db_run(d, DB_told_add, err, "iiiiiitt", r->id, (int64_t)w->rank, (int64_t)w->segment, it->step,
		      it->time_ms, it->count, it->key, it->text);
}
