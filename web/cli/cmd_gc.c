/* cmd_gc.c: `dptrack gc`: removes for good what was deleted. */
#include "web/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gc {
	struct cli_common common;
	const char *older_than, *keep_objects;
	bool journals, dry_run;
};

static long long number(json_t *reply, const char *key)
{
	return (long long)json_integer_value(json_object_get(reply, key));
}

/* The member named by the plural of a word, with that word. */
static const char *count(char *text, json_t *reply, const char *words)
{
	char word[32];

	snprintf(word, sizeof(word), "%.*s", (int)strlen(words) - 1, words);
	return cli_count(text, (unsigned long long)number(reply, words), word);
}

static void print(json_t *reply, bool dry_run, bool journals)
{
	char a[64], b[64];

	printf("%s %s with %s, ", dry_run ? "would remove" : "removed", count(a, reply, "runs"),
	       count(b, reply, "points"));
	if (number(reply, "models") || number(reply, "experiments"))
		printf("%s, %s, ", count(a, reply, "models"), count(b, reply, "experiments"));
	printf("%s (%.1f MB)", count(a, reply, "artifacts"), (double)number(reply, "artifact_bytes") * 1e-6);
	if (number(reply, "objects"))
		printf(", %s that no file has any more", count(a, reply, "objects"));
	if (journals)
		printf(", %s (%.1f MB)", count(a, reply, "journals"), (double)number(reply, "journal_bytes") * 1e-6);
	if (!dry_run)
		printf("; the store gave back %.1f MB", (double)number(reply, "freed_bytes") * 1e-6);
	putchar('\n');
}

/* *days stays where the flag was not given. */
static int read_days(const char *flag, const char *text, double *days, struct err *err)
{
	char *end;

	if (!text)
		return 0;
	*days = strtod(text, &end);
	return end == text || *end || !(*days >= 0 && *days <= 1e6)
		? err_set(err, ERR_USAGE, "--%s %s: want days, 0 to 1000000", flag, text) : 0;
}

static int collect(const struct gc *g, double days, double keep_days, struct err *err)
{
	const struct cli_common *c = &g->common;
	char body[160];
	const struct local_opts request = { .method = "POST", .target = "/api/v1/gc", .body = body };
	struct source *s;
	json_t *reply = NULL;
	int rc = source_open(&s, &c->source, err);

	if (rc)
		return rc;
	snprintf(body, sizeof(body),
		 "{\"older_than_days\":%.6f,\"keep_objects_days\":%.6f,\"journals\":%s,\"dry_run\":%s}", days,
		 keep_days, g->journals ? "true" : "false", g->dry_run ? "true" : "false");
	if (c->json)
		rc = cli_print(s, &request, err);
	else
		rc = source_json(s, &request, &reply, err);
	if (!rc && !c->json)
		print(reply, g->dry_run, g->journals);
	json_decref(reply);
	source_close(s);
	return rc;
}

static int gc_run(int argc, char **argv, struct err *err)
{
	struct gc g = { 0 };
	double days = 0, keep_days = 7;
	const struct flag table[] = {
		{ "older-than", FLAG_TEXT, "DAYS", "only what was deleted so many days ago or earlier (default: 0)",
		  &g.older_than, 0, 0 },
		{ "keep-objects", FLAG_TEXT, "DAYS",
		  "leave what no file names in the object store for so long; more than a restore of the database "
		  "goes back (default: 7)", &g.keep_objects, 0, 0 },
		{ "journals", FLAG_SWITCH, "", "also their journals below DIR (only what libdptrack wrote)",
		  &g.journals, 0, 0 },
		{ "dry-run", FLAG_SWITCH, "", "only say what would be removed", &g.dry_run, 0, 0 },
		CLI_COMMON_FLAGS(&g.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_gc, .table = table, .help = &g.common.help };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && g.common.csv)
		rc = err_set(err, ERR_USAGE, "gc: takes --json, not --csv");
	if (!rc)
		rc = read_days("older-than", g.older_than, &days, err);
	if (!rc)
		rc = read_days("keep-objects", g.keep_objects, &keep_days, err);
	if (!rc)
		rc = collect(&g, days, keep_days, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_gc = {
	.name = "gc",
	.group = "Maintain",
	.words = "",
	.summary = "remove deleted runs, models and experiments for good and give their bytes back",
	.run = gc_run
};
