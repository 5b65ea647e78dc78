/* hide.c: the hide rule, and its values for each segment of a run. */
#include "web/store/points/hide.h"

#include <string.h>

#include "web/store/base/list.h"
#include "web/store/base/no_memory.h"

struct hide_segment {
	int64_t number; /* first member, for list_find */
	struct hide hide;
};

bool hide_counts_epochs(const char *key)
{
	return !strncmp(key, "epoch/", 6);
}

int64_t hide_from(const struct hide *h, const char *key)
{
	return !h ? HIDE_NONE : hide_counts_epochs(key) ? h->epoch : h->step;
}

int hide_load(struct hide_list *ret, struct db *d, int64_t run_id, struct arena *a, struct err *err)
{
	struct hide_list l = { 0 };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_segment_list, err, "i", run_id);

	while (!rc && (rc = db_next(d, q, err)) > 0) {
		l.segments = list_room(a, l.segments, l.count, sizeof *l.segments);
		if (!l.segments) {
			db_stop(q);
			return no_memory(err);
		}
		l.segments[l.count++] = (struct hide_segment){
			.number = db_i32(q, COL_segment_list_number),
			.hide = { db_i64(q, COL_segment_list_hide_step), db_i64(q, COL_segment_list_hide_epoch) },
		};
		rc = 0;
	}
	if (!rc)
		*ret = l;
	return rc;
}

const struct hide *hide_get(const struct hide_list *l, int segment)
{
	size_t at = list_find(l->segments, l->count, sizeof *l->segments, segment);

	return at < l->count && l->segments[at].number == segment ? &l->segments[at].hide : NULL;
}
