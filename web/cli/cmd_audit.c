/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_audit.c: `dptrack audit` prints and exports the audit log. --check follows its chain here, whether the entries
 * come from the store, from a server or from a file of JSON lines that was exported before. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"
#include "tracker/base/text.h"
#include "web/cli/cli.h"
#include "web/store/audit/audit.h"

enum { AUDIT_PAGE = 1000, AUDIT_SHOWN = 100 };

struct audit_options {
	struct cli_common common;
	const char *author, *action, *object, *experiment, *from, *until, *since;
	int limit; /* 0: AUDIT_SHOWN, or all of an export */
	bool jsonl, check;
	const char *file;
};

/* Gets the entries, at most `most`; a negative result ends the walk. */
struct audit_walk {
	int64_t most;
	bool oldest_first;
	int (*entry)(void *arg, json_t *entry, struct err *err);
	void *arg;
	json_t *head; /* of the last page; owned */
};

/* Writes the milliseconds of "7d" (ago), or of a date and time, as an argument. */
static int add_time_arg(struct buf *target, const char *name, const char *text, struct err *err)
{
	char ms[24];
	int64_t span_ms;
	double s;

	if (!text)
		return 0;
	if (cli_span(text, &span_ms))
		span_ms = clock_wall_ms() - span_ms;
	else if (text_iso_time(text, &s))
		span_ms = (int64_t)(s * 1000);
	else
		return err_set(err, ERR_USAGE, "--%s %s: expected a time such as 12h or 7d (ago), or 2027-01-31T12:00",
			       name, text);
	snprintf(ms, sizeof(ms), "%" PRId64, span_ms);
	source_arg(target, name, ms);
	return 0;
}

static int make_audit_target(const struct audit_options *o, struct buf *target, struct err *err)
{
	int rc;

	buf_adds(target, "/api/v1/audit");
	source_arg(target, "author", o->author);
	source_arg(target, "action", o->action);
	source_arg(target, "object", o->object);
	source_arg(target, "experiment", o->experiment);
	rc = add_time_arg(target, "from", o->from, err);
	return rc ? rc : add_time_arg(target, "until", o->until, err);
}

/* Passes the entries that match, page by page. */
static int walk_audit_log(struct source *s, const struct audit_options *o, struct audit_walk *w, struct err *err)
{
	int64_t most = w->most;
	struct buf target;
	json_t *page = NULL, *entry;
	const char *token = "";
	char limit[24];
	size_t base, i;
	int rc;

	buf_init(&target, 65536);
	rc = make_audit_target(o, &target, err);
	source_arg(&target, "order", w->oldest_first ? "asc" : "desc");
	base = target.len;
	while (!rc && token && most > 0) {
		target.len = base;
		snprintf(limit, sizeof(limit), "%" PRId64, most < AUDIT_PAGE ? most : AUDIT_PAGE);
		source_arg(&target, "limit", limit);
		source_arg(&target, "page_token", *token ? token : NULL);
		json_decref(page);
		page = NULL;
		rc = buf_failed(&target) ? err_nomem(err, NULL) : cli_get_json(s, target.data, &page, err);
		json_array_foreach(json_object_get(page, "entries"), i, entry)
			if (!rc && most-- > 0)
				rc = w->entry(w->arg, entry, err);
		token = json_string_value(json_object_get(page, "next_page_token"));
	}
	if (!rc)
		w->head = json_incref(json_object_get(page, "head"));
	json_decref(page);
	buf_done(&target);
	return rc;
}

/* --- printing --------------------------------------------------------------------------------------------------- */

static int print_entry_line(void *arg, json_t *entry, struct err *err)
{
	(void)arg;
	json_dumpf(entry, stdout, JSON_COMPACT);
	return putchar('\n') == EOF ? err_set_errno(err, errno, "cannot write the entries") : 0;
}

static const char *const exported[] = { "via",	"author",     "action", "object", "id",
					"name", "experiment", "detail", "hash" };

static int add_exported_row(void *arg, json_t *entry, struct err *err)
{
	(void)err;
	table_cellf(arg, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(entry, "seq")));
	table_cellf(arg, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(entry, "time")));
	for (size_t i = 0; i < sizeof(exported) / sizeof(exported[0]); i++)
		table_cell(arg, cli_text(entry, exported[i]));
	return 0;
}

static int add_shown_row(void *arg, json_t *entry, struct err *err)
{
	const char *author = cli_text(entry, "author"), *name = cli_text(entry, "name");
	char time[32];

	(void)err;
	table_cell(arg, table_time(time, json_integer_value(json_object_get(entry, "time"))));
	table_cell(arg, *author ? author : cli_text(entry, "via"));
	table_cell(arg, cli_text(entry, "action"));
	table_cell(arg, cli_text(entry, "object"));
	table_cell(arg, *name ? name : cli_text(entry, "id"));
	table_cell(arg, cli_text(entry, "experiment"));
	table_cell(arg, cli_text(entry, "detail"));
	return 0;
}

static int print_audit_log(struct source *s, const struct audit_options *o, struct err *err)
{
	bool all = o->common.csv || o->common.json || o->jsonl;
	int64_t most = o->limit ? o->limit : all ? INT64_MAX : AUDIT_SHOWN;
	struct table *table = o->jsonl || o->common.json ? NULL : table_new();
	struct audit_walk to = { .most = most, .oldest_first = all, .entry = print_entry_line };
	int rc;

	if (table) {
		table_columns(table, all ? "seq,time,via,author,action,object,id,name,experiment,detail,hash"
					 : "time,author,action,object,name,experiment,detail");
		to.entry = all ? add_exported_row : add_shown_row;
		to.arg = table;
	}
	rc = walk_audit_log(s, o, &to, err);
	if (!rc && table)
		table_print(table, stdout, cli_table_form(&o->common));
	table_free(table);
	json_decref(to.head);
	return rc;
}

/* --- checking --------------------------------------------------------------------------------------------------- */

struct audit_check {
	const char *since; /* NULL: no head to compare with */
	struct audit_head head;
	int64_t begin; /* entries before it were not given */
	bool met;      /* the entry of since is part of the chain */
};

/* Returns true if the object has the members of an entry and no others. */
static bool is_audit_entry(json_t *entry)
{
	size_t n = sizeof(exported) / sizeof(exported[0]);
	bool is = json_is_integer(json_object_get(entry, "seq")) && json_is_integer(json_object_get(entry, "time"));

	for (size_t i = 0; i < n; i++)
		is = is && json_is_string(json_object_get(entry, exported[i]));
	return is && json_object_size(entry) == n + 2;
}

/* Follows the chain by one entry, and notes whether it is the one of --since. */
static int check_entry(void *arg, json_t *entry, struct err *err)
{
	struct audit_check *c = arg;
	const struct audit_entry e = { .seq = json_integer_value(json_object_get(entry, "seq")),
				       .time_ms = json_integer_value(json_object_get(entry, "time")),
				       .via = cli_text(entry, "via"),
				       .author = cli_text(entry, "author"),
				       .action = cli_text(entry, "action"),
				       .object = cli_text(entry, "object"),
				       .id = cli_text(entry, "id"),
				       .name = cli_text(entry, "name"),
				       .experiment = cli_text(entry, "experiment"),
				       .detail = cli_text(entry, "detail"),
				       .hash = cli_text(entry, "hash") };
	int rc;

	if (!c->head.seq && !c->met && c->since && e.seq > 1 && c->begin < 0) {
		c->begin = c->head.seq = e.seq - 1;
		memcpy(c->head.hash, c->since, sizeof(c->head.hash));
		c->met = true;
	}
	rc = audit_follow(&c->head, &e, err);
	c->met = c->met || (!rc && c->since && !strcmp(c->head.hash, c->since));
	return rc;
}

/* The recorded end of the log must be the end of the chain. */
static int check_end(const struct audit_check *c, json_t *head, struct err *err)
{
	int64_t seq = json_integer_value(json_object_get(head, "seq"));

	if (seq > c->head.seq)
		return err_set(err, ERR_CORRUPT,
			       "entries are missing: %" PRId64 " to %" PRId64 " at the end of the log", c->head.seq + 1,
			       seq);
	if (seq < c->head.seq || strcmp(cli_text(head, "hash"), c->head.hash))
		return err_set(err, ERR_CORRUPT,
			       "the log ends with entry %" PRId64 ", but another end was recorded: entries "
			       "were added or changed",
			       c->head.seq);
	return 0;
}

/* Checks the lines of an exported file. */
static int read_audit_file(struct audit_check *c, const char *path, struct err *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	long number = 0;
	json_t *entry;
	int rc = f ? 0 : err_set_errno(err, errno, "%s", path);
	ssize_t n;

	while (!rc && (n = getline(&line, &room, f)) >= 0) {
		number++;
		entry = json_loadb(line, (size_t)n, 0, NULL);
		if (!is_audit_entry(entry))
			rc = err_set(err, ERR_CORRUPT,
				     "%s: line %ld is not an entry: expected a file that dptrack audit "
				     "--jsonl made",
				     path, number);
		else if (number == 1 && !c->since && json_integer_value(json_object_get(entry, "seq")) > 1)
			rc = err_set(err, ERR_USAGE,
				     "%s: its first entry is not the first of the log: give the hash of the "
				     "entry before it: --since HASH",
				     path);
		else
			rc = check_entry(c, entry, err);
		json_decref(entry);
	}
	if (!rc && ferror(f))
		rc = err_set_errno(err, errno, "%s", path);
	free(line);
	if (f)
		fclose(f);
	return rc;
}

static int read_audit_store(struct audit_check *c, const struct audit_options *o, struct err *err)
{
	struct audit_walk to = { .most = INT64_MAX, .oldest_first = true, .entry = check_entry, .arg = c };
	struct source *s = NULL;
	int rc = source_open(&s, &o->common.source, err);

	c->begin = 0;
	if (!rc)
		rc = walk_audit_log(s, o, &to, err);
	if (!rc)
		rc = check_end(c, to.head, err);
	json_decref(to.head);
	source_close(s);
	return rc;
}

static int check_audit_log(const struct audit_options *o, struct err *err)
{
	struct audit_check c = { .since = o->since, .head = { .hash = AUDIT_NO_HASH }, .begin = -1 };
	int rc = o->file ? read_audit_file(&c, o->file, err) : read_audit_store(&c, o, err);

	if (!rc && o->since && !c.met)
		rc = err_set(err, ERR_CORRUPT,
			     "no entry has the hash %s: the log was rewritten, or cut off before that entry", o->since);
	if (rc)
		return rc;
	c.begin = c.begin < 0 ? 0 : c.begin;
	if (o->common.json)
		printf("{\"entries\":%" PRId64 ",\"seq\":%" PRId64 ",\"hash\":\"%s\"}\n", c.head.seq - c.begin,
		       c.head.seq, c.head.hash);
	else
		printf("entries: %" PRId64 ", none changed or missing; the last: %" PRId64 " %s\n",
		       c.head.seq - c.begin, c.head.seq, c.head.hash);
	return 0;
}

/* --- command ------------------------------------------------------------------------------------------------------ */

static int check_audit_flags(const struct audit_options *o, struct err *err)
{
	bool picks = o->author || o->action || o->object || o->experiment || o->from || o->until || o->limit;

	if (o->common.csv + o->common.json + o->jsonl > 1)
		return err_set(err, ERR_USAGE, "audit: expected one of --csv, --json and --jsonl");
	if (o->check && (picks || o->common.csv || o->jsonl))
		return err_set(err, ERR_USAGE,
			       "audit: --check reads the whole log: omit what selects or exports entries");
	if (!o->check && (o->file || o->since))
		return err_set(err, ERR_USAGE, "audit: %s is for --check", o->file ? o->file : "--since");
	if (o->since && !text_is_hex(o->since, 64, 64))
		return err_set(err, ERR_USAGE, "--since %.80s: expected the hash of an entry, 64 lower-case hex digits",
			       o->since);
	return 0;
}

/* Reads the flags, then prints or checks the log. */
static int run_audit_command(int argc, char **argv, struct err *err)
{
	struct audit_options o = { 0 };
	const struct flag table[] = {
		{ "author", FLAG_TEXT, "NAME", "only entries of this token or user", &o.author, 0, 0 },
		{ "action", FLAG_TEXT, "VERB", "only this one: create, rename, move, delete, restore, purge, …",
		  &o.action, 0, 0 },
		{ "object", FLAG_TEXT, "NOUN", "only of these: run, experiment, view, report, token, …", &o.object, 0,
		  0 },
		{ "experiment", FLAG_TEXT, "NAME", "only of this experiment", &o.experiment, 0, 0 },
		{ "from", FLAG_TEXT, "WHEN", "only later ones: 12h, 7d (ago), or a date and time in UTC", &o.from, 0,
		  0 },
		{ "until", FLAG_TEXT, "WHEN", "only earlier ones", &o.until, 0, 0 },
		{ "limit", FLAG_NUMBER, "N", "the newest N (default: 100; of an export: the oldest N, all)", &o.limit,
		  1, 1000000000 },
		{ "jsonl", FLAG_SWITCH, "", "export as JSON lines, which --check reads", &o.jsonl, 0, 0 },
		{ "check", FLAG_SWITCH, "", "check that no entry was changed or removed, in the store or in FILE",
		  &o.check, 0, 0 },
		{ "since", FLAG_TEXT, "HASH", "with --check: an entry has this hash, noted from an earlier check",
		  &o.since, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_audit, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	int rc = cli_line_read(&line, argc, argv, err);

	o.file = !rc && line.words.count ? line.words.items[0] : NULL;
	if (!rc)
		rc = check_audit_flags(&o, err);
	if (!rc && o.check) {
		rc = check_audit_log(&o, err);
	} else if (!rc) {
		rc = source_open(&s, &o.common.source, err);
		rc = rc ? rc : print_audit_log(s, &o, err);
		source_close(s);
	}
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_audit = { .name = "audit",
				       .group = "Maintain",
				       .words = "[FILE]",
				       .summary = "print, export and check the log of who changed what",
				       .examples = "  dptrack audit --experiment digits --action delete\n"
						   "  dptrack audit --jsonl >audit.jsonl\n"
						   "  dptrack audit --check audit.jsonl\n",
				       .run = run_audit_command };
