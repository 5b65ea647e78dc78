/* SPDX-License-Identifier: Apache-2.0 */
/* run_inside.h: a run and its parts, one section for each file. Private to this folder. */
#ifndef DPT_RUN_RUN_INSIDE_H
#define DPT_RUN_RUN_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "tracker/dptrack.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"
#include "tracker/run/log_queue.h"
#include "tracker/run/run_folder.h"
#include "tracker/sink/sink.h"

#define RUN_FILES "files" /* in the folder of a run: the files of dptrack_file */

struct dptrack_run {
	/* 1 in the process that opened the run; the page reads as 0 in a child of fork(). */
	_Atomic(int) *is_owner;
	struct arena *arena;
	struct run_folder folder;
	char id[NAMES_ID_BYTES];
	int rank;   /* EVENT_RANK_LAUNCHER for the launcher */
	int series; /* rank of the series that dptrack_log writes */
	int segment;
	double close_wait_s;
	const char *url, *token; /* of the server; NULL: none */
	struct keys *keys;
	struct log_queue *lanes;
	struct records *records;
	struct console_capture *printed;
	struct warn *warn;
	struct journal *journal;
	struct journal_uploader *uplink;
	struct writer *writer;
	pthread_mutex_t files_lock;
	struct file_uploader *courier;	/* protected by files_lock; NULL: no file yet, or no server */
	struct system_sampler *sampler; /* NULL: dptrack_system was not called */
	char gpu[48];			/* UUID of the GPU for the sampler; "": none */
	_Atomic(int64_t) newest_step;	/* the largest step logged; -1: none */
	_Atomic(uint64_t) dropped;
};

/* Returns false in a child of fork(), and for NULL. */
static inline bool run_usable(const struct dptrack_run *run)
{
	return run && atomic_load_explicit(run->is_owner, memory_order_relaxed);
}

/* ---- system_sampler.c ----
 * A thread that records system statistics (schema/event/system.def) at a fixed interval. It logs like any thread of the
 * caller. */

struct system_sampler;

/* run: borrowed until system_sampler_stop; its rank's series are written, with its newest step. */
int system_sampler_start(struct system_sampler **ret, struct dptrack_run *run, double interval_s, struct err *err);

/* Takes a last sample, unless the interval is too short, and ends the thread. NULL is fine. */
void system_sampler_stop(struct system_sampler *s);

/* ---- console_capture.c ----
 * Console capture: converts printed bytes into lines with times, for the journal. Any thread adds; the writer takes. A
 * line that is overwritten repeatedly (a progress bar) is recorded about once a second. */

struct console_capture;

struct console_capture *console_capture_new(void);    /* NULL: out of memory */
void console_capture_free(struct console_capture *p); /* NULL is fine */

/* stream: 1 standard output, 2 standard error. Returns false if lines were dropped because too many were queued. */
bool console_capture_add(struct console_capture *p, int stream, const char *bytes, size_t n);

/* Appends a record of the lines since the last call; with `end` also the partial lines. */
void console_capture_take(struct console_capture *p, struct buf *to, bool end);

/* ---- journal_file.c ----
 * The file that this process appends to. Bytes at an offset never change after a reader may have seen them: a short
 * write is continued where it stopped. After an I/O error a new file with a new writer id starts with the first record
 * that is incomplete in the old one. One thread. */

struct journal;

struct journal_opts {
	const char *dir;
	/* Texts are borrowed for the journal's lifetime; journal_open sets writer_id, host, pid and version. */
	struct event_header header;
};

/* Creates the file and writes the header (and, except for the launcher, SessionLog START). */
int journal_open(struct journal **ret, const struct journal_opts *opts, struct err *err);
void journal_close(struct journal *j); /* NULL is fine; unwritten records are lost */

/* Returns the buffer to which the caller appends whole records; journal_write empties it. */
struct buf *journal_buf(struct journal *j);

/* Writes the buffer. Returns 0, ERR_NOSPC or ERR_IO; after an error nothing may be appended until a later call
 * succeeds. */
int journal_write(struct journal *j, struct err *err);
int journal_dup(const struct journal *j); /* another descriptor of the current file, for a sync; the caller closes it */

const char *journal_path(const struct journal *j);	/* of the current file; changes when a new one begins */
const char *journal_writer_id(const struct journal *j); /* also changes then */
uint64_t journal_bytes(const struct journal *j);	/* whole records in the current file */

/* ---- keys.c ----
 * The names of a run's series, each stored once. Looking up a known key takes no lock. Keys are valid until
 * keys_free. */

struct key {
	uint64_t hash;
	struct event_text text;
};

struct keys;

struct keys *keys_new(void);	/* NULL: out of memory */
void keys_free(struct keys *k); /* NULL is fine */

/* Returns the key of a text, adding it if new. Any thread. 0; ERR_USAGE (*ret_why has the reason), ERR_LIMIT or
 * ERR_NOMEM. */
int keys_get(struct keys *k, const char *text, const struct key **ret, const char **ret_why);

/* ---- records.c ----
 * The records of a run besides points: params, tags, notes, environment, status, … Any thread adds; the writer takes
 * the encoded records. Stores the params, so that the first value is kept and TensorBoard gets all of them in one
 * session start. */

enum record_pair { RECORD_TAG, RECORD_ENV };

struct records;

/* hparams: this journal has the session for TensorBoard's HParams tab. Returns NULL if out of memory. */
struct records *records_new(bool hparams);
void records_free(struct records *r); /* NULL is fine */

/* Texts are copied. 0; ERR_EXISTS: the param has another value; ERR_LIMIT: the queue is full; ERR_NOMEM. */
int records_param(struct records *r, const struct encode_param *p);
int records_pair(struct records *r, enum record_pair kind, struct event_text key, struct event_text value);
int records_note(struct records *r, struct event_text markdown);
int records_code(struct records *r, struct event_text name, struct event_text text);
int records_alert(struct records *r, const struct encode_alert *a);
int records_input(struct records *r, const struct event_input *in);
int records_file(struct records *r, const struct encode_file *f);
int records_media(struct records *r, const struct media_place *place, struct event_span content);
int records_status(struct records *r, enum event_status status, struct event_text reason);

/* Appends the records added since the last call. points_follow: the session start, with all params so far, must precede
 * the points. */
void records_take(struct records *r, struct buf *to, bool points_follow);

/* Appends the session's end if a start was written. */
void records_end(struct records *r, struct buf *to, enum event_status status);

/* ---- warn.c ----
 * Warnings to the user of the library. Any thread posts; the writer thread delivers, each kind at most once a minute,
 * so that no logging thread runs the user's callback. */

/* WARN_KEY to WARN_FILE: the text is about one of many items. */
enum warn_kind { WARN_QUEUE, WARN_KEY, WARN_PARAM, WARN_CUT, WARN_MEDIA, WARN_FILE, WARN_DISK, WARN_SYNC, WARN_SERVER,
		 WARN_SYSTEM, WARN_WRITER, WARN_UNSENT, WARN_LACKING, WARN_KINDS };

struct warn;

struct warn *warn_new(void (*callback)(void *user, const char *text), void *user); /* NULL: out of memory */
void warn_free(struct warn *w);							   /* NULL is fine */

/* Stores the newest text of each kind until it is delivered; the warning says whether it replaced others. */
void warn_post(struct warn *w, enum warn_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Delivers pending warnings. One thread at a time; all: independent of the time since the last one. */
void warn_deliver(struct warn *w, bool all);

void warn_mute(struct warn *w); /* stops all deliveries */

/* ---- writer.c ----
 * The thread that writes points and records to the journal: a write about every 0.2 s, earlier if much is queued; a
 * sync about every second; a heartbeat every 10 s. No other thread touches the journal. */

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
