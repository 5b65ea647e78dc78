/* SPDX-License-Identifier: Apache-2.0 */
/* records.h: the records of a run besides points: params, tags, notes, environment, status, … Any thread adds; the
 * writer takes the encoded records. Stores the params, so that the first value is kept and TensorBoard gets all of them
 * in one session start. */
#ifndef DPT_RUN_RECORDS_H
#define DPT_RUN_RECORDS_H

#include <stdbool.h>

#include "tracker/base/buf.h"
#include "tracker/event/event_encode.h"
#include "tracker/event/event_media.h"

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

#endif
