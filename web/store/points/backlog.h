/* backlog.h: decides when to fold a log that several processes write. A fold costs a row or two per series, so the
 * points of a run wait until there are many, until they are some minutes old, or until writing stops. Readers read
 * them from the log meanwhile. Writer's thread only. */
#ifndef DPT_STORE_BACKLOG_H
#define DPT_STORE_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "web/store/db/db.h"

#define BACKLOG_AGE_S 300
#define BACKLOG_MARK_S 10 /* between marks */
#define BACKLOG_MARKS (BACKLOG_AGE_S / BACKLOG_MARK_S + 1)
#define BACKLOG_QUIET_S 2.0
#define BACKLOG_LOOK_S 1.0

struct backlog {
	int64_t oldest, newest; /* rows of the log at the last look; 0: none */
	double looked_s, newest_s; /* time of the last look; time when newest was first seen */
	struct {
		double at_s;
		int64_t row; /* newest row at that time */
	} marks[BACKLOG_MARKS];
	unsigned mark_count; /* in total */
};

/* Reads the ends of the log if a look is due. */
int backlog_look(struct backlog *b, struct db *d, double now_s, struct err *err);

/* The newest row to fold now; 0: none. */
int64_t backlog_bound(const struct backlog *b, double now_s);

bool backlog_due(const struct backlog *b, double now_s);

#endif
