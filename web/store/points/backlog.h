/* backlog.h: when it pays to fold a log that several processes write. A fold costs a series a row or two, so a run's
 * points wait until there are many, or for some minutes, or until nobody writes any more. Readers see them in the log
 * meanwhile. Of the writer's thread. */
#ifndef DPT_STORE_BACKLOG_H
#define DPT_STORE_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/db/db.h"

#define BACKLOG_AGE_S 300
#define BACKLOG_MARK_S 10 /* between two marks */
#define BACKLOG_MARKS (BACKLOG_AGE_S / BACKLOG_MARK_S + 1)
#define BACKLOG_QUIET_S 2.0
#define BACKLOG_LOOK_S 1.0

struct backlog {
	int64_t oldest, newest; /* rows of the log at the last look; 0: none */
	double looked_s, newest_s; /* when that was, and when the newest one was first seen */
	struct {
		double at_s;
		int64_t row; /* the newest one then */
	} marks[BACKLOG_MARKS];
	unsigned mark_count; /* ever made */
};

/* Looks, when that is due. */
int backlog_look(struct backlog *b, struct db *d, double now_s, struct err *err);

/* The newest row that may be folded now; 0: none. */
int64_t backlog_bound(const struct backlog *b, double now_s);

bool backlog_due(const struct backlog *b, double now_s);

#endif
