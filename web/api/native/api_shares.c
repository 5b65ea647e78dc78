/* SPDX-License-Identifier: Apache-2.0 */
/* api_shares.c: /shares: links that show one thing. What a link shows is looked up for every request of its session, so
 * the session sees the view or report as it is now. schema/api/access.def says what it may ask of which route; the
 * restricted store, which has only the link's experiment, is a second wall. */
#include "web/store/auth/share.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/text.h"
#include "web/api/native/native_inside.h"
#include "web/store/base/map.h"
#include "web/store/saved_view/saved_view.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define SHARE_MS (30 * DAY_MS) /* default end */
#define SHARE_DAYS_MAX 366
/* Runs of a panel of a report, as the page draws them (RUNS_MAX, MEMBERS_MAX in web/ui/src/state/saved/reports.ts). */
enum { PANEL_RUNS = 100, PANEL_GROUPED_RUNS = 500, VIEW_RUNS = 50000 };

/* --- what a link shows -------------------------------------------------------------------------------------------- */

struct shown {
	const char *experiment, *name; /* of what is shown; the name of its first run, of runs */
	const char **ids;	       /* of its runs, sorted */
	size_t id_count;
	const char **filters; /* of the view, of panels */
	size_t filter_count;
};

static int compare_texts(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Adds runs that are not deleted. Returns false after failing the call. */
static bool add_shown_runs(struct call *c, struct query_runs_opts *o, struct shown *ret)
{
	struct query_runs runs;
	struct err err = ERR_INIT;

	o->bare = !o->parts;
	if (query_runs(c->api->store, o, c->arena, &runs, &err)) {
		request_refused(c, &err);
		return false;
	}
	for (size_t i = 0; i < runs.count; i++) {
		if (o->parts) { /* of a view that leaves out archived runs */
			const char *archived =
				api_pair(runs.items[i].tags, runs.items[i].tag_count, "dptrack.archived");

			if (archived && !strcmp(archived, "true"))
				continue;
		}
		if (!ret->id_count && !ret->name) {
			ret->name = runs.items[i].name;
			ret->experiment = runs.items[i].experiment;
		}
		list_push(c->arena, &ret->ids, &ret->id_count, runs.items[i].id);
	}
	return true;
}

/* Keeps the runs whose ids begin with one of those in the list, "0123abcd.4567ef01". */
static void keep_listed_runs(struct call *c, struct shown *io, const char *list)
{
	size_t n = 0;

	for (size_t i = 0; i < io->id_count; i++) {
		const char *at = strstr(list, arena_printf(c->arena, "%.8s", io->ids[i]));

		if (at && (at == list || at[-1] == '.'))
			io->ids[n++] = io->ids[i];
	}
	io->id_count = n;
}

/* The runs that the table of a view lists. */
static bool read_view_runs(struct call *c, const struct saved_view *k, struct shown *ret)
{
	const char *text = k->text + (*k->text == '?'), *filter = request_form_part(c, text, "q");
	const char *listed = request_form_part(c, text, "o");
	struct query_runs_opts o = { .experiments = &k->experiment,
				     .experiment_count = 1,
				     .filter = filter,
				     .limit = VIEW_RUNS,
				     .parts = request_form_part(c, text, "arch") ? 0 : QUERY_TAGS };

	if (!add_shown_runs(c, &o, ret))
		return false;
	if (request_form_part(c, text, "only") && listed)
		keep_listed_runs(c, ret, listed);
	if (filter)
		list_push(c->arena, &ret->filters, &ret->filter_count, filter);
	return true;
}

/* What the lines of one panel say; NULL: nothing. */
struct panel {
	const char *runs, *filter, *experiment, *group, *frozen;
};

/* Takes a setting of a panel: "runs: 1a2b3c4d 5e6f7a8b". */
static void read_panel_line(struct call *c, struct panel *p, const char *line)
{
	const struct {
		const char *name, **into;
	} parts[] = { { "runs", &p->runs },
		      { "filter", &p->filter },
		      { "experiment", &p->experiment },
		      { "group", &p->group },
		      { "frozen", &p->frozen } };
	const char *colon = strchr(line, ':'), *end;

	line += strspn(line, " \t");
	for (size_t i = 0; colon && i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t n = strlen(parts[i].name);

		if (strncmp(line, parts[i].name, n) || line + n + strspn(line + n, " \t") != colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		for (end = colon + strlen(colon); end > colon && strchr(" \t\r", end[-1]); end--)
			;
		*parts[i].into = arena_printf(c->arena, "%.*s", (int)(end - colon), colon);
		return;
	}
}

/* Panels of other experiments show nothing: the link is of one. */
static bool add_panel_runs(struct call *c, const struct panel *p, struct shown *ret)
{
	struct query_runs_opts o = { .experiments = &ret->experiment,
				     .experiment_count = 1,
				     .limit = p->group && *p->group ? PANEL_GROUPED_RUNS : PANEL_RUNS };
	const char **ids = NULL;

	if (p->frozen || (p->experiment && *p->experiment && strcmp(p->experiment, ret->experiment)))
		return true;
	if (p->runs && *p->runs) {
		char *rest = arena_strdup(c->arena, p->runs), *id, whole[33];

		while ((id = strsep(&rest, " ,\t")))
			if (text_is_hex(id, RUN_PREFIX_MIN, 32) && !query_run_id(c->api->store, id, whole, NULL))
				list_push(c->arena, &ids, &o.id_count, arena_strdup(c->arena, whole));
		o.ids = ids;
		return !o.id_count || add_shown_runs(c, &o, ret);
	}
	o.filter = p->filter;
	if (p->filter && *p->filter)
		list_push(c->arena, &ret->filters, &ret->filter_count, p->filter);
	if (add_shown_runs(c, &o, ret))
		return true;
	buf_reset(&c->out); /* the panel says what is wrong with its filter */
	c->status = 200;
	return true;
}

/* The runs of the panels in a report, in the form of web/ui/src/base/report.ts. */
static bool read_report_runs(struct call *c, const struct saved_view *k, struct shown *ret)
{
	char *rest = arena_strdup(c->arena, k->text), *line;
	struct panel p = { 0 };
	bool inside = false;

	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, "```", 3)) {
			if (inside && !add_panel_runs(c, &p, ret))
				return false;
			p = (struct panel){ 0 };
			inside = !strncmp(line, "```panel", 8);
		} else if (inside) {
			read_panel_line(c, &p, line);
		}
	return true;
}

static enum call_next fail_gone(struct call *c, const struct share *s)
{
	return call_fail(c, CALL_gone, NULL, "what this link shows was deleted or moved: ask %s for another link",
			 *s->person ? s->person : "who made it");
}

/* Returns false after failing the call: what the link shows is not there. */
static bool read_shown(struct call *c, const struct share *s, struct shown *ret)
{
	bool view = s->kind == SHARE_VIEW;
	struct saved_view_sel sel = { .shelf = view ? SAVED_VIEW_VIEW : SAVED_VIEW_REPORT };
	struct query_runs_opts o = { .ids = s->target, .id_count = s->target_count, .limit = s->target_count };
	struct err err = ERR_INIT;
	struct saved_view k;
	int rc;

	*ret = (struct shown){ 0 };
	if (s->kind == SHARE_RUN || s->kind == SHARE_COMPARISON) {
		if (!add_shown_runs(c, &o, ret))
			return false;
		if (!ret->id_count)
			return fail_gone(c, s), false;
	} else {
		sel.id = strtoll(s->target[0], NULL, 10);
		rc = saved_view_get(c->api->store, &sel, c->arena, &k, &err);
		if (rc)
			return rc == ERR_NOENT ? fail_gone(c, s) : call_fail_err(c, NULL, &err), false;
		ret->experiment = k.experiment;
		ret->name = k.name;
		if (!(view ? read_view_runs(c, &k, ret) : read_report_runs(c, &k, ret)))
			return false;
	}
	if (ret->id_count)
		qsort(ret->ids, ret->id_count, sizeof(*ret->ids), compare_texts);
	return true;
}

/* --- what its session may ask ------------------------------------------------------------------------------------- */

/* The run of the link that begins so, alone; NULL after failing the call. */
static const char *find_shown_run(struct call *c, const struct shown *s, const char *prefix)
{
	const char *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->id_count && strlen(prefix) >= RUN_PREFIX_MIN; i++)
		if (!strncmp(s->ids[i], prefix, strlen(prefix)) && (!i || strcmp(s->ids[i], s->ids[i - 1]))) {
			found = s->ids[i];
			n++;
		}
	if (n == 1)
		return found;
	call_fail(c, CALL_not_found, "run", "this link shows no run %.40s", prefix);
	return NULL;
}

static bool is_shown_filter(const struct shown *s, const char *filter)
{
	bool is = !*filter;

	for (size_t i = 0; i < s->filter_count; i++)
		is = is || !strcmp(s->filters[i], filter);
	return is;
}

/* Arguments that choose neither runs nor names of other runs. */
static bool is_shared_argument(const struct shown *s, const struct call_arg *a)
{
	static const char *const plain[] = { "key",    "rank",	     "segments", "x",	       "form",
					     "band",   "spacing",    "buckets",	 "from",       "to",
					     "limit",  "page_token", "fields",	 "metrics",    "metrics_max",
					     "params", "params_max", "include",	 "experiment", "formula" };

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!strcmp(a->name, plain[i]))
			return true;
	return !strcmp(a->name, "filter") && is_shown_filter(s, a->value);
}

/* Completes the ids in the arguments run; the list of runs without one gets all of the link. */
static bool admit_run_arguments(struct call *c, const struct shown *s)
{
	struct call_arg *args = NULL;
	bool named = false;
	size_t n = 0;

	for (size_t i = 0; i < c->address.arg_count; i++) {
		struct call_arg arg = c->address.args[i];

		if (!strcmp(arg.name, "run")) {
			arg.value = find_shown_run(c, s, arg.value);
			named = true;
		} else if (!is_shared_argument(s, &arg)) {
			call_fail(c, CALL_forbidden, arg.name, "%.40s: a link does not search: a token is needed",
				  arg.name);
			return false;
		}
		if (!arg.value)
			return false;
		list_push(c->arena, &args, &n, arg);
	}
	if (!named && !s->id_count) /* an id that no run has */
		list_push(c->arena, &args, &n, (struct call_arg){ "run", "00000000000000000000000000000000", false });
	for (size_t i = 0; i < s->id_count && !named; i++)
		list_push(c->arena, &args, &n, (struct call_arg){ "run", s->ids[i], false });
	c->address.args = args;
	c->address.arg_count = n;
	return true;
}

/* Checks the member runs of the body, which has whole ids. */
static bool admit_run_members(struct call *c, const struct shown *s)
{
	json_t *body = json_body(c), *runs, *id;
	bool ok = true;
	size_t i;

	if (!body)
		return false;
	runs = json_object_get(body, "runs");
	json_array_foreach(runs, i, id) {
		const char *text = json_is_string(id) ? json_string_value(id) : "";

		ok = ok && s->id_count && bsearch(&text, s->ids, s->id_count, sizeof(*s->ids), compare_texts);
		if (!ok)
			call_fail(c, CALL_not_found, "runs", "this link shows no run %.40s", text);
	}
	json_decref(body);
	return ok;
}

bool api_share_admits(struct call *c)
{
	enum call_shared may = c->route->shared;
	struct shown shown;
	struct share s;

	if (!c->client.share || may == SHARED_OPEN || c->route->scope == SCOPE_OPEN)
		return true;
	share_parse(&s, c->arena, c->client.share);
	if (may == SHARED_TEXT) {
		const char *kind = share_kind_name(s.kind);

		if (!strncmp(c->route->name, kind, strlen(kind)) && !strcmp(c->address.vars[0], s.target[0]) &&
		    !c->address.arg_count)
			return true;
		call_fail(c, CALL_not_found, NULL, "this link does not show this");
		return false;
	}
	if (!read_shown(c, &s, &shown))
		return false;
	if (may == SHARED_RUNS)
		return admit_run_arguments(c, &shown);
	if (may == SHARED_BODY)
		return admit_run_members(c, &shown);
	c->address.vars[0] = find_shown_run(c, &shown, c->address.vars[0]);
	return c->address.vars[0];
}

/* --- the routes --------------------------------------------------------------------------------------------------- */

static const char *share_state_name(const struct share *s)
{
	if (s->revoked_ms != INT64_MIN)
		return "revoked";
	return s->expires_ms <= clock_wall_ms() ? "expired" : "valid";
}

static void write_share_target(struct js *j, const struct share *s)
{
	js_key_str(j, "kind", share_kind_name(s->kind));
	js_key_open(j, "target", '[');
	for (size_t i = 0; i < s->target_count; i++)
		js_str(j, s->target[i]);
	js_close(j, ']');
	js_key_str(j, "name", s->name);
	js_key_str(j, "person", s->person);
}

static void write_share(struct js *j, const struct share *s)
{
	js_open(j, '{');
	js_key_str(j, "id", s->id);
	write_share_target(j, s);
	js_key_str(j, "experiment", s->experiment);
	js_key_str(j, "state", share_state_name(s));
	run_json_time(j, "created_time", s->created_ms);
	run_json_time(j, "expires_time", s->expires_ms);
	run_json_time(j, "revoked_time", s->revoked_ms);
	run_json_time(j, "used_time", s->used_ms);
}

void share_write_session(struct call *c, struct js *j)
{
	struct share s;

	share_parse(&s, c->arena, c->client.share);
	js_key_open(j, "share", '{');
	write_share_target(j, &s);
	js_close(j, '}');
}

static enum call_next reply_share_list(struct call *c)
{
	struct js j = { .out = &c->out };
	struct err err = ERR_INIT;
	struct share *list;
	size_t n;

	if (share_list(c->api->store, c->arena, &list, &n, &err))
		return call_fail_err(c, NULL, &err);
	js_open(&j, '{');
	js_key_open(&j, "shares", '[');
	for (size_t i = 0; i < n; i++) {
		write_share(&j, &list[i]);
		js_close(&j, '}');
	}
	js_close(&j, ']');
	return js_reply(c, &j);
}

enum call_next on_share_list(struct call *c)
{
	return call_args_done(c) ? reply_share_list(c) : CALL_DONE;
}

static enum call_next reply_revoked_share(struct call *c, const struct ingest_result *res)
{
	(void)res;
	return reply_share_list(c);
}

enum call_next on_share_delete(struct call *c)
{
	const struct ingest_op op = { .kind = &share_change_revoke, .name = c->address.vars[0] };

	if (!call_args_done(c))
		return CALL_DONE;
	return api_submit(c, &(struct api_change){ .op = &op, .field = "share", .then = reply_revoked_share });
}

/* A new link, kept until it is durable. */
struct share_draft {
	struct share share;
	char id[SHARE_ID_MAX];
	char secret[TOKEN_TEXT_MAX];
	char hash[TOKEN_HASH_MAX];
};

static enum call_next reply_new_share(struct call *c, const struct ingest_result *res)
{
	const struct share_draft *m = c->own;
	struct js j = { .out = &c->out };

	(void)res;
	c->status = 201;
	c->reply.cache = "no-store";
	write_share(&j, &m->share);
	js_key_str(&j, "secret", m->secret);
	js_key_str(&j, "path", arena_printf(c->arena, "share#%s", m->secret));
	js_close(&j, '}');
	buf_addc(&c->out, '\n');
	return CALL_DONE;
}

/* Reads the targets of a new link. Returns false after failing the call. */
static bool read_share_target(struct call *c, struct share *s, json_t *target)
{
	const bool runs = s->kind == SHARE_RUN || s->kind == SHARE_COMPARISON;
	const size_t most = s->kind == SHARE_COMPARISON ? SHARE_TARGETS_MAX : 1;
	const char **list = NULL;
	json_t *item;
	size_t i;

	json_array_foreach(target, i, item)
		list_push(c->arena, &list, &s->target_count, json_is_string(item) ? json_string_value(item) : "");
	s->target = list;
	request_distinct(c, &s->target, &s->target_count);
	if (!s->target_count || s->target_count > most || (s->kind == SHARE_COMPARISON && s->target_count < 2))
		call_fail(c, CALL_bad_value, "target", "target: expected %s of a %s",
			  s->kind == SHARE_COMPARISON ? "the ids of 2 to 100 runs" : "one id",
			  share_kind_name(s->kind));
	else if (runs)
		return request_run_ids(c, "target", &s->target, s->target_count);
	else if (strspn(s->target[0], "0123456789") == strlen(s->target[0]) && strlen(s->target[0]) <= 18)
		return true;
	else
		call_fail(c, CALL_not_found, "target", "target: there is no %s %.40s", share_kind_name(s->kind),
			  s->target[0]);
	return false;
}

/* Looks up what a new link would show. Returns false after failing the call. */
static bool check_share_target(struct call *c, struct share *s)
{
	struct query_runs_opts o = {
		.ids = s->target, .id_count = s->target_count, .bare = true, .limit = s->target_count
	};
	struct query_runs runs = { 0 };
	struct err err = ERR_INIT;
	struct shown shown;

	if (!read_shown(c, s, &shown)) {
		if (c->status == 400)
			call_fail(c, CALL_bad_filter, "target",
				  "target: the view selects its runs by words, which only the page matches: give it a "
				  "filter such as name LIKE '%%base%%'");
		if (c->status == 410)
			call_fail(c, CALL_not_found, "target", "target: there is no %s %.40s",
				  s->kind == SHARE_COMPARISON ? "run" : share_kind_name(s->kind), s->target[0]);
		return false;
	}
	s->experiment = shown.experiment;
	s->name = shown.name;
	if (s->kind != SHARE_COMPARISON)
		return true;
	if (query_runs(c->api->store, &o, c->arena, &runs, &err))
		return call_fail_err(c, NULL, &err), false;
	for (size_t i = 0; i < runs.count; i++)
		if (strcmp(runs.items[i].experiment, s->experiment))
			return call_fail(c, CALL_bad_value, "target", "target: a link shows runs of one experiment"),
			       false;
	if (runs.count < s->target_count)
		return call_fail(c, CALL_not_found, "target", "target: %zu of the %zu runs are not there",
				 s->target_count - runs.count, s->target_count),
		       false;
	s->name = arena_printf(c->arena, "%zu runs", runs.count);
	return true;
}

enum call_next on_share_create(struct call *c)
{
	struct share_draft *m = arena_alloc(c->arena, sizeof(*m));
	int64_t now = clock_wall_ms(), expires = now + SHARE_MS;
	const char *kind = NULL;
	json_t *target = NULL;
	struct err err = ERR_INIT;
	struct share_new made;
	const struct ingest_op op = { .kind = &share_change_new, .more = &made };
	const struct json_field fields[] = {
		{ "kind", JSON_KIND_STRING, true, &kind, NULL },
		{ "target", JSON_KIND_ARRAY, true, &target, NULL },
		{ "expires_time", JSON_KIND_INT, false, &expires, NULL },
		{ 0 },
	};

	if (!json_args(c, fields))
		return CALL_DONE;
	*m = (struct share_draft){ .share = { .id = m->id,
					      .created_ms = now,
					      .expires_ms = expires,
					      .person = c->client.person ? c->client.person : "",
					      .revoked_ms = INT64_MIN,
					      .used_ms = INT64_MIN } };
	if (!token_needed(c->api->store))
		return call_fail(c, CALL_forbidden, NULL,
				 "this server needs no token: the address of the page is the link");
	if (!share_kind_read(kind, &m->share.kind))
		return call_fail(c, CALL_bad_value, "kind", "kind: expected run, comparison, view or report");
	if (expires <= now || expires > now + SHARE_DAYS_MAX * DAY_MS)
		return call_fail(c, CALL_bad_value, "expires_time", "expires_time: expected a time of the next %d days",
				 SHARE_DAYS_MAX);
	if (!read_share_target(c, &m->share, target) || !check_share_target(c, &m->share))
		return CALL_DONE;
	if (text_random_hex(m->id, 8) || token_draw(m->secret, m->hash, &err))
		return call_fail(c, CALL_internal, NULL, "cannot get random bytes");
	made = (struct share_new){ m->share, m->hash };
	c->own = m;
	return api_submit(c, &(struct api_change){ .op = &op, .field = "target", .then = reply_new_share });
}

/* --- a visitor ---------------------------------------------------------------------------------------------------- */

enum call_next on_share_page_get(struct call *c)
{
	return call_args_done(c) ? session_share(c) : CALL_DONE;
}

/* Returns true if the browser has a session that may see the experiment without the link. */
static bool sees_experiment(struct call *c, const char *experiment)
{
	struct token_try t = { .arena = c->arena };
	struct grants g = { 0 };

	t.text = session_cookie_value(c->host->header(c, "Cookie"), session_cookie_name(c), &t.len);
	if (!t.text || token_session_check(c->api->store, &t) <= TOKEN_NONE || t.share)
		return false;
	return !t.grants || !*t.grants ||
	       (!grants_parse(&g, c->arena, t.grants, NULL) && grants_level(&g, experiment) >= GRANT_READ);
}

/* The address of what is shown, relative to the page. */
static const char *share_page_address(struct call *c, const struct share *s)
{
	const char *address;
	struct buf b;

	buf_init(&b, 65536);
	buf_adds(&b, s->kind == SHARE_VIEW ? "?v=" : "?e=");
	text_add_escaped(&b, s->kind == SHARE_VIEW ? s->target[0] : s->experiment, "-._~");
	if (s->kind == SHARE_RUN)
		buf_addf(&b, "&r=%.12s", s->target[0]);
	if (s->kind == SHARE_REPORT)
		buf_addf(&b, "&report=%s", s->target[0]);
	for (size_t i = 0; s->kind == SHARE_COMPARISON && i < s->target_count; i++)
		buf_addf(&b, "%s%.8s", i ? "." : "&side&o=", s->target[i]);
	address = arena_strdup(c->arena, buf_failed(&b) ? "" : b.data);
	buf_done(&b);
	return address;
}

static enum call_next reply_opened_share(struct call *c, const struct ingest_result *res)
{
	const struct share *s = c->own;
	struct js j = { .out = &c->out };

	(void)res;
	c->reply.cache = "no-store";
	js_open(&j, '{');
	js_key_str(&j, "kind", share_kind_name(s->kind));
	js_key_str(&j, "page", share_page_address(c, s));
	run_json_time(&j, "expires_time", s->expires_ms);
	return js_reply(c, &j);
}

/* A person who may see it anyway keeps the own session. */
enum call_next on_share_exchange(struct call *c)
{
	struct session_new row = { .until_ms = clock_wall_ms() + TOKEN_SESSION_MS };
	const struct ingest_op op = { .kind = &session_change_new, .more = &row };
	struct share *s = arena_alloc(c->arena, sizeof(*s));
	const struct api *whole = c->api;
	char cookie[TOKEN_TEXT_MAX];
	const char *secret = NULL;
	struct err err = ERR_INIT;
	struct shown shown;
	int rc;
	const struct json_field fields[] = { { "secret", JSON_KIND_STRING, true, &secret, NULL }, { 0 } };

	if (!json_args(c, fields))
		return CALL_DONE;
	token_hash(secret, strlen(secret), row.token);
	rc = share_find(c->api->store, row.token, c->arena, s, &err);
	if (rc == ERR_NOENT)
		return call_fail(c, CALL_not_found, "secret",
				 "there is no such link: maybe its address was not copied whole");
	if (rc)
		return call_fail_err(c, NULL, &err);
	if (strcmp(share_state_name(s), "valid") != 0)
		return call_fail(c, CALL_gone, "secret", "this link has ended: ask %s for another one",
				 *s->person ? s->person : "who made it");
	c->own = s;
	if (sees_experiment(c, s->experiment))
		return reply_opened_share(c, NULL);
	api_restrict(c, arena_printf(c->arena, "=%" PRId64, s->experiment_id), TOKEN_READ);
	if (!read_shown(c, s, &shown))
		return CALL_DONE;
	c->api = whole;
	if (token_draw(cookie, row.hash, &err))
		return call_fail_err(c, NULL, &err);
	c->reply.cookie = session_cookie(c, cookie, "");
	call_header(c, "Set-Cookie", "dptrack_share=1; Path=/; SameSite=Strict"); /* for scripts of the page */
	return api_submit(c, &(struct api_change){ .op = &op, .then = reply_opened_share });
}
