/* writer.h: the thread that moves points and records from memory to the journal: one write about every 0.2 s, earlier
 * when much is queued; a sync asked for about every second; a heartbeat every 10 s. It alone touches the journal. */
#ifndef DPT_RUN_WRITER_H
#define DPT_RUN_WRITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/event/event.h"
#include "tracker/run/journal.h"
#include "tracker/run/lanes.h"
#include "tracker/run/printed.h"
#include "tracker/run/records.h"
#include "tracker/run/warn.h"
#include "tracker/sink/uplink.h"

struct writer;

/* All borrowed until writer_stop. */
struct writer_opts {
	struct journal *journal;
	struct lanes *lanes;
	struct records *records;
	struct printed *printed;
	struct warn *warn;
	struct uplink *uplink; /* NULL: no server */
	_Atomic(uint64_t) *dropped;
	int journal_rank;
};

int writer_start(struct writer **ret, const struct writer_opts *opts, struct err *err);

/* Any thread: waits until what was queued before is in the file; ERR_BUSY when wait_s is over first, or the disk
 * refuses it. */
int writer_flush(struct writer *w, double wait_s);

/* Writes the rest and the status (EVENT_RUNNING: none), syncs, ends the thread and frees w. Where the disk does not
 * take the rest within some seconds, *ret_lost points are given up. ERR_BUSY: the thread hangs in a write or sync and
 * goes on using all that it was given. */
int writer_stop(struct writer *w, enum event_status status, uint64_t *ret_lost, struct err *err);

#endif
