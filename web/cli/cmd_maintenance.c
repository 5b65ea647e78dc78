/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_maintenance.c: `dptrack doctor` checks the store and prints what to do; it exits with 1 if something is wrong.
 * `dptrack gc` removes deleted runs for good. */
#include <stdlib.h>
#include <string.h>

#include "tracker/base/json_print.h"
#include "tracker/base/run_folders.h"
#include "tracker/base/utf8.h"
#include "web/cli/cli.h"
#include "web/store/maintenance/maintenance.h"

/* --- doctor ----------------------------------------------------------------------------------------------------- */

struct doctor_options {
	struct cli_common common;
	bool full;
};

static void print_check_line(const char *level, const char *name, const char *text)
{
	char shown[4096];

	utf8_escape(shown, sizeof(shown), text);
	printf("%-8s %-10s %s\n", level, name, shown);
}

static int fail_unless_healthy(const char *worst, struct err *err)
{
	if (!strcmp(worst, "ok") || !strcmp(worst, "note"))
		return 0;
	return err_set(err, ERR_CORRUPT, "the store has problems, see above");
}

static int print_check_report(json_t *reply, bool json, struct err *err)
{
	json_t *list = json_object_get(reply, "findings"), *f;
	size_t i;

	if (json)
		json_print(json_incref(reply), JSON_COMPACT);
	json_array_foreach(list, i, f)
		if (!json)
			print_check_line(cli_text(f, "level"), cli_text(f, "check"), cli_text(f, "text"));
	return fail_unless_healthy(cli_text(reply, "worst"), err);
}

/* Reports on a store that cannot be opened, as far as its file can be checked. */
static int print_unopened_store(const struct doctor_options *d, const struct err *why, struct err *err)
{
	const struct source_opts *o = &d->common.source;
	struct arena *a = arena_new();
	struct check_report r = { 0 };
	struct store_paths paths;
	json_t *list = json_array(), *reply;
	size_t i;
	int rc = store_locate(&paths, run_folders_dir(o->logdir), o->db, err);

	if (!rc)
		rc = check_file(paths.db, a, &r, err);
	for (i = 0; i < r.count; i++)
		json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "level", check_level_name(r.items[i].level),
						      "check", r.items[i].name, "text", r.items[i].text));
	json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "level", "error", "check", "open", "text", why->text));
	reply = json_pack("{s:s,s:o}", "worst", "error", "findings", list);
	if (!rc)
		rc = print_check_report(reply, d->common.json, err);
	json_decref(reply);
	arena_free(a);
	return rc;
}

static int examine_store(const struct doctor_options *d, struct err *err)
{
	const struct local_opts request = { .method = "POST", .target = "/api/v1/doctor",
					    .body = d->full ? "{\"full\":true}" : "{\"full\":false}" };
	struct err why = ERR_INIT;
	struct source *s;
	json_t *reply = NULL;
	int rc = source_open(&s, &d->common.source, &why);

	if (rc == ERR_CORRUPT || rc == ERR_DAMAGED || rc == ERR_IO || rc == ERR_NOSPC)
		return print_unopened_store(d, &why, err);
	if (rc) {
		*err = why;
		return rc;
	}
	rc = source_json(s, &request, &reply, err);
	if (!rc)
		rc = print_check_report(reply, d->common.json, err);
	json_decref(reply);
	source_close(s);
	return rc;
}

static int run_doctor_command(int argc, char **argv, struct err *err)
{
	struct doctor_options d = { 0 };
	const struct flag table[] = {
		{ "full", FLAG_SWITCH, "", "check every point and index instead of samples", &d.full, 0, 0 },
		CLI_COMMON_FLAGS(&d.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_doctor, .table = table, .help = &d.common.help };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && d.common.csv)
		rc = err_set(err, ERR_USAGE, "doctor: --csv is not supported: use --json");
	if (!rc)
		rc = examine_store(&d, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_doctor = { .name = "doctor",
					.group = "Maintain",
					.words = "",
					.summary = "check the store and say what to do",
					.examples = "  dptrack doctor --logdir runs\n",
					.run = run_doctor_command };

struct gc_options {
	struct cli_common common;
	const char *older_than, *keep_objects;
	bool journals, dry_run, retention;
};

static long long read_reply_number(json_t *reply, const char *key)
{
	return (long long)json_integer_value(json_object_get(reply, key));
}

/* Formats the member of a plural name as "3 runs". */
static const char *count_reply_items(char *text, json_t *reply, const char *words)
{
	char word[32];

	snprintf(word, sizeof(word), "%.*s", (int)strlen(words) - 1, words);
	return cli_count(text, (unsigned long long)read_reply_number(reply, words), word);
}

/* Prints what was removed, or would be, and where its space is now. */
static void print_removed(json_t *reply, bool dry_run, bool journals)
{
	char a[64], b[64];

	printf("%s %s with %s, ", dry_run ? "would remove" : "removed", count_reply_items(a, reply, "runs"),
	       count_reply_items(b, reply, "points"));
	if (read_reply_number(reply, "models") || read_reply_number(reply, "experiments"))
		printf("%s, %s, ", count_reply_items(a, reply, "models"), count_reply_items(b, reply, "experiments"));
	printf("%s (%.1f MB)", count_reply_items(a, reply, "artifacts"),
	       (double)read_reply_number(reply, "artifact_bytes") * 1e-6);
	if (read_reply_number(reply, "objects"))
		printf(", %s without a file", count_reply_items(a, reply, "objects"));
	if (journals)
		printf(", %s (%.1f MB)", count_reply_items(a, reply, "journals"),
		       (double)read_reply_number(reply, "journal_bytes") * 1e-6);
	if (read_reply_number(reply, "kept"))
		printf("; kept %lld in the trash that registered model versions need",
		       read_reply_number(reply, "kept"));
	if (!dry_run && !strcmp(cli_text(reply, "space"), "reused"))
		printf("; PostgreSQL uses the freed space again (VACUUM FULL gives it to the disk)");
	else if (!dry_run)
		printf("; freed %.1f MB of the store", (double)read_reply_number(reply, "freed_bytes") * 1e-6);
	putchar('\n');
}

/* Parses a number of days; *days is unchanged if the flag is absent. */
static int read_days(const char *flag, const char *text, double *days, struct err *err)
{
	char *end;

	if (!text)
		return 0;
	*days = strtod(text, &end);
	return end == text || *end || !(*days >= 0 && *days <= 1e6)
		? err_set(err, ERR_USAGE, "--%s %s: expected days, 0 to 1000000", flag, text) : 0;
}

/* Runs the collection and prints what it removed. */
static int collect_garbage(const struct gc_options *g, double days, double keep_days, struct err *err)
{
	const struct cli_common *c = &g->common;
	char body[200];
	const struct local_opts request = { .method = "POST", .target = "/api/v1/gc", .body = body };
	struct source *s;
	json_t *reply = NULL;
	int rc = source_open(&s, &c->source, err);

	if (rc)
		return rc;
	snprintf(
		body, sizeof(body),
		"{\"older_than_days\":%.6f,\"keep_objects_days\":%.6f,\"journals\":%s,\"dry_run\":%s,\"retention\":%s}",
		days, keep_days, g->journals ? "true" : "false", g->dry_run ? "true" : "false",
		g->retention ? "true" : "false");
	rc = c->json ? cli_print(s, &request, err) : source_json(s, &request, &reply, err);
	if (reply)
		print_removed(reply, g->dry_run, g->journals);
	json_decref(reply);
	source_close(s);
	return rc;
}

/* Reads the flags and runs the collection. */
static int run_gc_command(int argc, char **argv, struct err *err)
{
	struct gc_options g = { 0 };
	double days = 0, keep_days = 7;
	const struct flag table[] = {
		{ "older-than", FLAG_TEXT, "DAYS", "only what was deleted at least DAYS days ago (default: 0)",
		  &g.older_than, 0, 0 },
		{ "keep-objects", FLAG_TEXT, "DAYS",
		  "keep unreferenced objects in the object store for DAYS days; choose more than a restore of the "
		  "database may go back (default: 7)",
		  &g.keep_objects, 0, 0 },
		{ "journals", FLAG_SWITCH, "",
		  "also remove their journals below DIR (only those that libdptrack wrote)", &g.journals, 0, 0 },
		{ "retention", FLAG_SWITCH, "", "only what the rules of dptrack retention say, as the server does",
		  &g.retention, 0, 0 },
		{ "dry-run", FLAG_SWITCH, "", "only print what would be removed", &g.dry_run, 0, 0 },
		CLI_COMMON_FLAGS(&g.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_gc, .table = table, .help = &g.common.help };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && g.common.csv)
		rc = err_set(err, ERR_USAGE, "gc: --csv is not supported: use --json");
	if (!rc)
		rc = read_days("older-than", g.older_than, &days, err);
	if (!rc)
		rc = read_days("keep-objects", g.keep_objects, &keep_days, err);
	if (!rc)
		rc = collect_garbage(&g, days, keep_days, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_gc = {
	.name = "gc",
	.group = "Maintain",
	.words = "",
	.summary = "remove the trash for good, and what the rules of retention say, and free the space",
	.examples = "  dptrack gc --logdir runs\n"
		    "  dptrack gc --older-than 30 --dry-run\n",
	.run = run_gc_command
};
