/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c: adds entries to the log, checks the links of its chain, and reads pages of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/base/sha256.h"
#include "tracker/base/utf8.h"
#include "web/store/audit/audit.h"
#include "web/store/db/db.h"

static void add_hashed_text(struct buf *b, const char *text)
{
	buf_addf(b, "%zu:", strlen(text));
	buf_adds(b, text);
}

static void add_hashed_number(struct buf *b, int64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, v);
	add_hashed_text(b, text);
}

static void hash_entry(const char *before, const struct audit_entry *e, char ret[AUDIT_HASH_MAX])
{
	const char *texts[] = { e->via, e->author, e->action, e->object, e->id, e->name, e->experiment, e->detail };
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, before);
	add_hashed_number(&b, e->seq);
	add_hashed_number(&b, e->time_ms);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		add_hashed_text(&b, texts[i]);
	sha256_hex(b.data, b.len, ret);
	buf_done(&b);
}

const char *audit_text(struct arena *a, const char *text)
{
	char copy[AUDIT_TEXT_MAX] = "";

	if (text)
		utf8_copy(copy, sizeof(copy), text, strlen(text), NULL);
	return arena_strdup(a, copy);
}

static int read_audit_head(struct db *d, struct audit_head *ret, struct err *err)
{
	struct audit_head head = { .hash = AUDIT_NO_HASH };
	struct db_rows *q;
	int rc = db_start(d, &q, DB_audit_head, err, "");

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0) {
		head.seq = db_i64(q, COL_audit_head_seq);
		snprintf(head.hash, sizeof(head.hash), "%s", db_str(q, COL_audit_head_hash));
	}
	if (!rc)
		*ret = head;
	return rc;
}

int audit_append(struct db *d, struct audit_entry *list, size_t n, struct err *err)
{
	struct audit_head head;
	int rc = db_run(d, DB_audit_lock, err, "");

	if (!rc)
		rc = read_audit_head(d, &head, err);
	for (size_t i = 0; i < n && !rc; i++) {
		struct audit_entry *e = &list[i];
		char hash[AUDIT_HASH_MAX];

		e->seq = head.seq + 1;
		hash_entry(head.hash, e, hash);
		rc = db_run(d, DB_audit_add, err, "iittttttttt", e->seq, e->time_ms, e->via, e->author, e->action,
			    e->object, e->id, e->name, e->experiment, e->detail, hash);
		head.seq = e->seq;
		memcpy(head.hash, hash, sizeof(hash));
	}
	return rc ? rc : db_run(d, DB_audit_head_put, err, "it", head.seq, head.hash);
}

int audit_follow(struct audit_head *head, const struct audit_entry *e, struct err *err)
{
	char hash[AUDIT_HASH_MAX];

	if (e->seq <= head->seq)
		return err_set(err, ERR_CORRUPT,
			       "entry %" PRId64 " stands after entry %" PRId64 ": the log was changed", e->seq,
			       head->seq);
	if (e->seq != head->seq + 1)
		return err_set(err, ERR_CORRUPT, "entries are missing: %" PRId64 " to %" PRId64 " of the log",
			       head->seq + 1, e->seq - 1);
	hash_entry(head->hash, e, hash);
	if (strcmp(hash, e->hash))
		return err_set(err, ERR_CORRUPT,
			       "entry %" PRId64 " was changed, or the hash of the one before it: its hash is %.16s…, "
			       "its text has %.16s…",
			       e->seq, e->hash, hash);
	head->seq = e->seq;
	memcpy(head->hash, hash, sizeof(hash));
	return 0;
}

/* --- reading -------------------------------------------------------------------------------------------------------
 */

static struct audit_entry read_audit_entry(struct arena *a, struct db_rows *q)
{
	return (struct audit_entry){ .seq = db_i64(q, COL_audit_rows_seq),
				     .time_ms = db_i64(q, COL_audit_rows_time_ms),
				     .via = db_text(a, q, COL_audit_rows_via),
				     .author = db_text(a, q, COL_audit_rows_author),
				     .action = db_text(a, q, COL_audit_rows_action),
				     .object = db_text(a, q, COL_audit_rows_object),
				     .id = db_text(a, q, COL_audit_rows_id),
				     .name = db_text(a, q, COL_audit_rows_name),
				     .experiment = db_text(a, q, COL_audit_rows_experiment),
				     .detail = db_text(a, q, COL_audit_rows_detail),
				     .hash = db_text(a, q, COL_audit_rows_hash) };
}

static int collect_audit_rows(struct db *d, const struct audit_select *sel, struct arena *a, struct audit_list *l,
			      struct err *err)
{
	struct db_rows *q;
	int rc = db_start(d, &q, sel->oldest_first ? DB_audit_rows_up : DB_audit_rows, err, "iiiittttti", sel->after,
			  sel->before, sel->from_ms, sel->until_ms, sel->author, sel->action, sel->object, sel->id,
			  sel->experiment, (int64_t)sel->limit + 1);

	while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
		if (l->count < sel->limit)
			list_push(a, &l->items, &l->count, read_audit_entry(a, q));
		else
			l->more = true;
	return rc;
}

int audit_list(struct store *s, const struct audit_select *sel, struct arena *a, struct audit_list *ret,
	       struct err *err)
{
	struct audit_list l = { .more = false };
	struct db *d;
	int rc = readers_take(s, &d, err);

	if (rc)
		return rc;
	rc = read_audit_head(d, &l.head, err);
	if (!rc)
		rc = collect_audit_rows(d, sel, a, &l, err);
	readers_give(s, d);
	if (!rc)
		*ret = l;
	return rc;
}

/* Fills *ret from the first and the last entry of an object. */
static void read_audit_author(struct arena *a, struct db_rows *q, struct audit_authors *ret)
{
	const char *author = *db_str(q, COL_audit_ends_author) ? db_text(a, q, COL_audit_ends_author) : NULL;

	if (!db_i32(q, COL_audit_ends_last)) {
		ret->created_by = strcmp(db_str(q, COL_audit_ends_action), "create") ? NULL : author;
	} else {
		ret->changed_by = author;
		ret->changed_ms = db_i64(q, COL_audit_ends_time_ms);
	}
}

int audit_authors(struct store *s, const struct audit_objects *o, struct arena *a, struct audit_authors *ret,
		  struct err *err)
{
	struct db_rows *q;
	struct db *d;
	int rc = readers_take_permitted(s, &d, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < o->count && rc >= 0; i++) {
		ret[i] = (struct audit_authors){ .changed_ms = INT64_MIN };
		rc = db_start(d, &q, DB_audit_ends, err, "ttt", o->object, o->ids[i], o->name);
		while (rc >= 0 && (rc = db_next(d, q, err)) > 0)
			read_audit_author(a, q, &ret[i]);
	}
	readers_give(s, d);
	return rc;
}
