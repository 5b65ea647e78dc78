/* SPDX-License-Identifier: Apache-2.0 */
/* api_saved_views.c: /views and /reports: named texts that users store. The two kinds differ in the name of the text,
 * and only lists of views contain it. */
#include "web/store/audit/audit.h"
#include "web/store/saved_view/saved_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "web/api/native/native_inside.h"
#include "web/store/base/etag.h"

/* One kind of stored text; c->own points to one of these. */
struct kept_kind {
	const char *name, *list; /* name of one, of a list */
	const char *text;	 /* member of the request and the reply */
	bool listed;		 /* lists contain the text */
};

static const struct kept_kind views = { SAVED_VIEW_VIEW, "views", "query", true };
static const struct kept_kind reports = { SAVED_VIEW_REPORT, "reports", "text", false };

static void write_kept_id(struct js *j, int64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, id);
	js_key_str(j, "id", text);
}

/* One of them with its authors. */
struct kept_item {
	const struct saved_view *kept;
	const struct audit_authors *by; /* NULL: not said */
};

/* Reads the authors of n views or reports. Returns false after failing the call. */
static bool read_kept_authors(struct call *c, const struct kept_kind *shelf, const struct saved_view *list, size_t n,
			      struct audit_authors **ret)
{
	const char **ids = arena_array(c->arena, n + 1, sizeof(*ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = arena_printf(c->arena, "%" PRId64, list[i].id);
	return audit_read_authors(
		c, &(struct audit_objects){ .object = shelf->name, .name = "", .ids = ids, .count = n }, ret);
}

/* Writes a view or report; whole adds the list of editions, and the text where lists omit it. */
static void write_kept_text(struct js *j, const struct kept_kind *shelf, const struct kept_item *item, bool whole)
{
	const struct saved_view *k = item->kept;
	size_t i;

	js_open(j, '{');
	write_kept_id(j, k->id);
	js_key_str(j, "name", k->name);
	js_key_str(j, "experiment", k->experiment);
	if (whole || shelf->listed)
		js_key_str(j, shelf->text, k->text);
	js_key_bool(j, "default", k->preferred);
	js_key_int(j, "edition", k->edition);
	run_json_time(j, "created_time", k->created_ms);
	run_json_time(j, "changed_time", k->updated_ms);
	audit_write_authors(j, item->by);
	if (whole) {
		js_key_open(j, "editions", '[');
		for (i = 0; i < k->edition_count; i++)
			run_json_edition(j, k->editions[i].number, k->editions[i].written_ms);
		js_close(j, ']');
	}
	js_close(j, '}');
}

static enum call_next list_kept(struct call *c, const struct kept_kind *shelf)
{
	struct saved_view_sel sel = { .shelf = shelf->name, .experiment = call_arg(c, "experiment") };
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct audit_authors *by;
	struct saved_views all;
	size_t i;

	if (!call_args_done(c))
		return CALL_DONE;
	if (saved_view_list(c->api->store, &sel, c->arena, &all, &err))
		return call_fail_err(c, NULL, &err);
	if (!read_kept_authors(c, shelf, all.items, all.count, &by))
		return CALL_DONE;
	js_open(&j, '{');
	js_key_open(&j, shelf->list, '[');
	for (i = 0; i < all.count; i++)
		write_kept_text(&j, shelf, &(struct kept_item){ &all.items[i], by ? &by[i] : NULL }, false);
	js_close(&j, ']');
	return js_reply(c, &j);
}

/* Reads one into *ret. Returns false after failing the call. */
static bool read_kept(struct call *c, const struct kept_kind *shelf, int64_t id, int64_t edition,
		      struct saved_view *ret)
{
	struct saved_view_sel sel = { .shelf = shelf->name, .id = id, .edition = edition };
	struct err err = ERR_INIT;
	int rc = saved_view_get(c->api->store, &sel, c->arena, ret, &err);

	if (rc == ERR_NOENT && edition)
		call_fail(c, CALL_not_found, "edition", "no %s %" PRId64 " has this edition", shelf->name, id);
	else if (rc == ERR_NOENT)
		call_fail(c, CALL_not_found, NULL, "no %s %" PRId64, shelf->name, id);
	else if (rc)
		call_fail_err(c, NULL, &err);
	return !rc;
}

static enum call_next reply_kept(struct call *c, const struct kept_kind *shelf, const struct saved_view *k)
{
	char tag[ETAG_BYTES];
	struct js j = { .out = &c->out };
	struct audit_authors *by;

	if (!read_kept_authors(c, shelf, k, 1, &by))
		return CALL_DONE;
	etag_write(saved_view_hash(k), tag);
	c->reply.etag = arena_strdup(c->arena, tag);
	write_kept_text(&j, shelf, &(struct kept_item){ k, by }, true);
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

static enum call_next get_kept(struct call *c, const struct kept_kind *shelf)
{
	int64_t edition = 0, id = request_number(c, 0, shelf->name);
	struct saved_view k;

	if (!id || !call_arg_int(c, "edition", &edition, 1, INT64_MAX) || !call_args_done(c) ||
	    !read_kept(c, shelf, id, edition, &k))
		return CALL_DONE;
	return reply_kept(c, shelf, &k);
}

static enum call_next reply_changed_kept(struct call *c, const struct ingest_result *res)
{
	const struct kept_kind *shelf = c->own;
	struct saved_view k;

	return read_kept(c, shelf, strtoll(res->id, NULL, 10), 0, &k) ? reply_kept(c, shelf, &k) : CALL_DONE;
}

static enum call_next reply_created_kept(struct call *c, const struct ingest_result *res)
{
	enum call_next next = reply_changed_kept(c, res);

	if (c->status == 200)
		c->status = 201;
	return next;
}

static bool write_stored_kept(struct call *c, struct js *j)
{
	const struct kept_kind *shelf = c->own;
	struct audit_authors *by;
	struct saved_view k;

	if (!read_kept(c, shelf, request_number(c, 0, shelf->name), 0, &k) || !read_kept_authors(c, shelf, &k, 1, &by))
		return false;
	write_kept_text(j, shelf, &(struct kept_item){ &k, by }, true);
	return true;
}

/* Submits the body as a new view or report, or as a change of the one in op. */
static enum call_next submit_kept_body(struct call *c, const struct kept_kind *shelf, struct saved_view_op *op)
{
	bool isnew = op->kind == &kept_change_new;
	bool preferred = false, given = false;
	struct json_field fields[] = {
		{ "name", JSON_KIND_STRING, isnew, &op->name, NULL },
		{ shelf->text, JSON_KIND_STRING, isnew, &op->text, NULL },
		{ "default", JSON_KIND_BOOL, false, &preferred, &given },
		{ "editing", JSON_KIND_STRING, false, &op->editing, NULL },
		{ isnew ? "experiment" : NULL, JSON_KIND_STRING, false, &op->experiment, NULL },
		{ 0 },
	};
	struct ingest_op ingest = saved_view_ingest(op);

	if (!json_args(c, fields))
		return CALL_DONE;
	op->shelf = shelf->name;
	op->seen = isnew ? NULL : c->host->header(c, "If-Match");
	op->preferred = given ? preferred : -1;
	c->own = (void *)shelf;
	return api_submit(c, &(struct api_change){ .op = &ingest,
						   .field = "name",
						   .stored = write_stored_kept,
						   .then = isnew ? reply_created_kept : reply_changed_kept });
}

static enum call_next create_kept(struct call *c, const struct kept_kind *shelf)
{
	return submit_kept_body(c, shelf, &(struct saved_view_op){ .kind = &kept_change_new });
}

static enum call_next answer_kept_edit(struct call *c, const struct kept_kind *shelf)
{
	struct saved_view_op op = { .kind = &kept_change_edit, .id = request_number(c, 0, shelf->name) };

	return op.id ? submit_kept_body(c, shelf, &op) : CALL_DONE;
}

/* A copy of the deleted one for the reply, so that a client can create it again. */
struct deleted_kept {
	const struct kept_kind *shelf;
	struct saved_view kept;
};

static enum call_next reply_deleted_kept(struct call *c, const struct ingest_result *res)
{
	const struct deleted_kept *d = c->own;

	(void)res;
	return reply_kept(c, d->shelf, &d->kept);
}

static enum call_next answer_kept_delete(struct call *c, const struct kept_kind *shelf)
{
	struct deleted_kept *d = arena_alloc(c->arena, sizeof(*d));
	int64_t id = request_number(c, 0, shelf->name);
	struct saved_view_op op = { .kind = &kept_change_delete, .shelf = shelf->name, .id = id, .preferred = -1 };
	struct ingest_op ingest = saved_view_ingest(&op);

	if (!id || !call_args_done(c))
		return CALL_DONE;
	if (!read_kept(c, shelf, id, 0, &d->kept))
		return CALL_DONE;
	d->shelf = shelf;
	c->own = d;
	return api_submit(c, &(struct api_change){ .op = &ingest, .then = reply_deleted_kept });
}

enum call_next on_report_edition_delete(struct call *c)
{
	struct saved_view_op op = { .kind = &kept_change_forget,
				    .shelf = SAVED_VIEW_REPORT,
				    .preferred = -1,
				    .id = request_number(c, 0, SAVED_VIEW_REPORT) };
	struct ingest_op ingest = saved_view_ingest(&op);

	op.edition = op.id ? request_number(c, 1, "edition") : 0;
	if (!op.edition || !call_args_done(c))
		return CALL_DONE;
	c->own = (void *)&reports;
	return api_submit(c, &(struct api_change){ .op = &ingest, .field = "edition", .then = reply_changed_kept });
}

enum call_next on_view_list(struct call *c)
{
	return list_kept(c, &views);
}

enum call_next on_view_create(struct call *c)
{
	return create_kept(c, &views);
}

enum call_next on_view_get(struct call *c)
{
	return get_kept(c, &views);
}

enum call_next on_view_patch(struct call *c)
{
	return answer_kept_edit(c, &views);
}

enum call_next on_view_delete(struct call *c)
{
	return answer_kept_delete(c, &views);
}

enum call_next on_report_list(struct call *c)
{
	return list_kept(c, &reports);
}

enum call_next on_report_create(struct call *c)
{
	return create_kept(c, &reports);
}

enum call_next on_report_get(struct call *c)
{
	return get_kept(c, &reports);
}

enum call_next on_report_patch(struct call *c)
{
	return answer_kept_edit(c, &reports);
}

enum call_next on_report_delete(struct call *c)
{
	return answer_kept_delete(c, &reports);
}
