/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h: the thread that writes points and records to the journal: a write about every 0.2 s, earlier if much is
 * queued; a sync about every second; a heartbeat every 10 s. No other thread touches the journal. */
#ifndef DPT_RUN_WRITER_H
#define DPT_RUN_WRITER_H

#include <stdatomic.h>
#include <stdint.h>

#include "tracker/base/err.h"
#include "tracker/event/event.h"
#include "tracker/run/console_capture.h"
#include "tracker/run/journal_file.h"
#include "tracker/run/log_queue.h"
#include "tracker/run/records.h"
#include "tracker/run/warn.h"
#include "tracker/sink/journal_uploader.h"

struct writer;

/* All are borrowed until writer_stop. */
struct writer_opts {
	struct journal *journal;
	struct log_queue *lanes;
	struct records *records;
	struct console_capture *printed;
	struct warn *warn;
	struct journal_uploader *uplink; /* NULL: no server */
	_Atomic(uint64_t) *dropped;
	int journal_rank;
};

int writer_start(struct writer **ret, const struct writer_opts *opts, struct err *err);

/* Waits until everything queued before is in the file. Any thread. Returns ERR_BUSY on timeout, or if the disk
 * refuses. */
int writer_flush(struct writer *w, double wait_s);

/* Writes the rest and the status (EVENT_RUNNING: none), syncs, ends the thread and frees w. If the disk refuses for
 * some seconds, *ret_lost points are lost. ERR_BUSY: the thread hangs in a write or sync; it keeps using everything in
 * its options. */
int writer_stop(struct writer *w, enum event_status status, uint64_t *ret_lost, struct err *err);

#endif
