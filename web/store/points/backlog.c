/* backlog.c: rows of the log have no time, but ascending numbers: marks record the newest row at certain times. */
#include "web/store/points/backlog.h"

static void mark_backlog_rate(struct backlog *b, double now_s)
{
	unsigned last = (b->mark_count + BACKLOG_MARKS - 1) % BACKLOG_MARKS, at = b->mark_count % BACKLOG_MARKS;

	if (b->mark_count && now_s < b->marks[last].at_s + BACKLOG_MARK_S)
		return;
	b->marks[at].at_s = now_s;
	b->marks[at].row = b->newest;
	b->mark_count++;
}

int backlog_look(struct backlog *b, struct db *d, double now_s, struct err *err)
{
	int64_t before = b->newest;
	struct db_rows *q;
	int rc;

	if (b->looked_s > 0 && now_s < b->looked_s + BACKLOG_LOOK_S)
		return 0;
	b->looked_s = now_s;
	rc = db_start(d, &q, DB_log_ends, err, "");
	if (rc || (rc = db_next(d, q, err)) <= 0)
		return rc;
	b->oldest = db_i64(q, COL_log_ends_oldest);
	b->newest = db_i64(q, COL_log_ends_newest);
	db_stop(q);
	if (b->newest != before)
		b->newest_s = now_s;
	mark_backlog_rate(b, now_s);
	return 0;
}

int64_t backlog_bound(const struct backlog *b, double now_s)
{
	int64_t bound = 0;
	unsigned i;

	if (now_s >= b->newest_s + BACKLOG_QUIET_S)
		return b->newest;
	for (i = 0; i < BACKLOG_MARKS && i < b->mark_count; i++)
		if (now_s >= b->marks[i].at_s + BACKLOG_AGE_S && b->marks[i].row > bound)
			bound = b->marks[i].row;
	return bound;
}

bool backlog_due(const struct backlog *b, double now_s)
{
	return b->oldest && b->oldest <= backlog_bound(b, now_s);
}
