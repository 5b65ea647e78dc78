/* SPDX-License-Identifier: Apache-2.0 */
/* run_read.c: dptrack_read: reads the journals of a run's folder, record by record. Incomplete records at the end are
 * normal, damaged ones are skipped. Independent of the use of the records. */
#include "tracker/dptrack.h"

#include <stdio.h>

#include "tracker/base/text.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"
#include "tracker/run/run_folder.h"

struct run_reading {
	const struct dptrack_reader *reader;
	struct err err; /* of the first unreadable journal */
	int journals;
	int rank, segment; /* of the current journal */
	char key[LIMIT_key_bytes + 1], value[LIMIT_value_bytes + 1];
};

static const char *terminate_text(struct event_text t, char *to, size_t room)
{
	size_t n = t.len < room - 1 ? t.len : room - 1;

	memcpy(to, t.at, n);
	to[n] = '\0';
	return to;
}

static void report_run_journal(struct run_reading *r, const struct event_header *h, double wall_time)
{
	char id[NAMES_ID_BYTES], name[2 * LIMIT_name_chars], experiment[2 * LIMIT_name_chars], host[256];

	r->journals++;
	r->rank = h->rank;
	r->segment = h->segment;
	if (r->reader->journal)
		r->reader->journal(r->reader->user,
				   &(struct dptrack_journal){
					   .run_id = terminate_text(h->run_id, id, sizeof(id)),
					   .run_name = terminate_text(h->run_name, name, sizeof(name)),
					   .experiment = terminate_text(h->experiment, experiment, sizeof(experiment)),
					   .host = terminate_text(h->host, host, sizeof(host)),
					   .rank = h->rank < 0 ? -1 : h->rank,
					   .world_size = h->world_size,
					   .segment = h->segment,
					   .wall_time = wall_time });
}

static void report_point(struct run_reading *r, const struct event *ev, const struct event_item *item)
{
	int rank = item->rank == EVENT_RANK_DEFAULT ? (r->rank > 0 ? r->rank : EVENT_RANK_RUN) : item->rank;

	if (r->reader->point)
		r->reader->point(r->reader->user,
				 &(struct dptrack_point){ .key = terminate_text(item->key, r->key, sizeof(r->key)),
							  .rank = rank,
							  .segment = r->segment,
							  .step = ev->step,
							  .wall_time = ev->wall_time,
							  .value = item->value });
}

static const char *format_param(struct run_reading *r, const struct event_item *item)
{
	if (item->type == EVENT_TYPE_F64)
		text_double(r->value, item->value, 15);
	else if (item->type == EVENT_TYPE_I64)
		snprintf(r->value, sizeof(r->value), "%lld", (long long)item->integer);
	else if (item->type == EVENT_TYPE_BOOL)
		snprintf(r->value, sizeof(r->value), "%s", item->integer ? "true" : "false");
	else
		terminate_text(item->text, r->value, sizeof(r->value));
	return r->value;
}

static void report_fact(struct run_reading *r, enum dptrack_fact kind, const struct event_item *item)
{
	if (r->reader->fact)
		r->reader->fact(r->reader->user, kind, terminate_text(item->key, r->key, sizeof(r->key)),
				format_param(r, item));
}

/* Passes the items of a record to the functions of the reader. */
static void report_record(struct run_reading *r, const struct record *rec)
{
	struct event_item item;
	struct event ev;

	if (event_open(&ev, rec->payload, rec->payload_bytes))
		return;
	while (event_next(&ev, &item) > 0) {
		if (item.kind == EVENT_HEADER)
			report_run_journal(r, item.header, ev.wall_time);
		else if (item.kind == EVENT_SCALAR)
			report_point(r, &ev, &item);
		else if (item.kind == EVENT_STATUS && r->reader->status)
			r->reader->status(r->reader->user, (enum dptrack_status)item.status, ev.wall_time,
					  terminate_text(item.text, r->value, sizeof(r->value)));
		else if (item.kind == EVENT_PARAM)
			report_fact(r, DPTRACK_FACT_PARAM, &item);
		else if (item.kind == EVENT_TAG || item.kind == EVENT_ENV) {
			item.type = EVENT_TYPE_TEXT;
			report_fact(r, item.kind == EVENT_TAG ? DPTRACK_FACT_TAG : DPTRACK_FACT_ENVIRONMENT, &item);
		}
	}
}

static void read_journal_file(void *user, const struct journal_file *f)
{
	struct run_reading *r = user;
	enum record_state state;
	struct file_map m;
	struct record rec;
	size_t at = 0;

	if (!f->bytes || r->err.code || file_map_open(&m, f->path, &r->err))
		return;
	while ((state = record_next(m.bytes, m.n, &at, &rec)) == RECORD_OK || state == RECORD_BAD_PAYLOAD) {
		if (state == RECORD_OK)
			report_record(r, &rec);
		else
			at += rec.frame_bytes;
	}
	file_map_close(&m);
}

int dptrack_read(const char *dir, const struct dptrack_reader *reader, struct dptrack_error *error)
{
	struct run_reading r = { .reader = reader, .err = ERR_INIT };

	run_folder_journals(dir, NULL, read_journal_file, &r);
	if (!r.err.code && !r.journals)
		err_set(&r.err, ERR_NOENT, "%s is not a run's folder: it has no journal", dir);
	if (r.err.code && error) {
		error->code = r.err.code;
		snprintf(error->text, sizeof(error->text), "%s", r.err.text);
	}
	return r.err.code;
}
