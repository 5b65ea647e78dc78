/* SPDX-License-Identifier: Apache-2.0 */
/* journal_file.h: the file that this process appends to. Bytes at an offset never change after a reader may have seen
 * them: a short write is continued where it stopped. After an I/O error a new file with a new writer id starts with the
 * first record that is incomplete in the old one. One thread. */
#ifndef DPT_RUN_JOURNAL_FILE_H
#define DPT_RUN_JOURNAL_FILE_H

#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/event/event.h"

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

const char *journal_path(const struct journal *j);      /* of the current file; changes when a new one begins */
const char *journal_writer_id(const struct journal *j); /* also changes then */
uint64_t journal_bytes(const struct journal *j);        /* whole records in the current file */

#endif
