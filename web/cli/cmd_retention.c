/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_retention.c: `dptrack retention [set|preview]`: the rules by which the server deletes artifacts and empties the
 * trash. */
#include "web/cli/cli.h"

#include <stdlib.h>
#include <string.h>

struct retention_options {
	struct cli_common common;
	const char *experiment, *artifacts, *trash, *quota, *keep_best;
	bool inherit;
};

static bool has_rule_flags(const struct retention_options *o)
{
	return o->artifacts || o->trash || o->quota || o->keep_best;
}

/* Reads "30", "0.5" or "off" into a member; absent flags leave it. */
static int set_number(json_t *rule, const char *flag, const char *text, const char *key, struct err *err)
{
	char *end;
	double v;

	if (!text)
		return 0;
	if (!strcmp(text, "off"))
		return json_object_set_new(rule, key, json_null()), 0;
	v = strtod(text, &end);
	if (end == text || *end || !(v >= 0 && v <= 1e6))
		return err_set(err, ERR_USAGE, "--%s %s: expected 0 to 1000000, or off", flag, text);
	json_object_set_new(rule, key, strcmp(flag, "keep-best") ? json_real(v) : json_integer((json_int_t)v));
	return 0;
}

/* Reads "500G" and the like, or "off". */
static int set_quota(json_t *rule, const char *text, struct err *err)
{
	static const char units[] = "kMGT";
	const char *unit;
	char *end;
	double v;

	if (!text)
		return 0;
	if (!strcmp(text, "off"))
		return json_object_set_new(rule, "quota_bytes", json_null()), 0;
	v = strtod(text, &end);
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		v *= 1000;
	if (end == text || (*end && (!unit || end[1])) || !(v >= 1 && v < 1e18))
		return err_set(err, ERR_USAGE,
			       "--quota %s: expected bytes, such as 500G (k, M, G, T), at least 1, or off", text);
	json_object_set_new(rule, "quota_bytes", json_integer((json_int_t)v));
	return 0;
}

/* The stored rule of the experiment, or of all: the one that flags change. NULL: it has none. */
static json_t *find_rule(json_t *reply, const char *experiment)
{
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(reply, "experiments"), i, item)
		if (experiment && !strcmp(cli_text(item, "experiment"), experiment))
			return item;
	return experiment ? NULL : json_object_get(reply, "all");
}

/* Appends the bytes as "1.2 GB"; null: a dash. */
static void add_bytes_cell(struct table *t, json_t *value)
{
	double v = json_number_value(value);

	if (json_is_null(value))
		table_cell(t, NULL);
	else
		table_cellf(t, v < 1e9 ? "%.1f MB" : "%.1f GB", v < 1e9 ? v * 1e-6 : v * 1e-9);
}

static void add_days_cell(struct table *t, json_t *value)
{
	char text[32];

	table_cell(t, json_is_null(value) ? NULL : table_exact(text, json_number_value(value)));
}

static void add_rule_row(struct table *t, const char *experiment, json_t *rule)
{
	table_cell(t, experiment);
	add_days_cell(t, json_object_get(rule, "artifact_days"));
	table_cellf(t, "%lld", (long long)json_integer_value(json_object_get(rule, "keep_best")));
	add_days_cell(t, json_object_get(rule, "trash_days"));
	add_bytes_cell(t, json_object_get(rule, "quota_bytes"));
}

static int print_rules(const struct retention_options *o, json_t *reply)
{
	struct table *t = table_new();
	json_t *item;
	size_t i;

	table_columns(t, "experiment,>artifact days,>keep best,>trash days,>quota");
	add_rule_row(t, "(all others)", json_object_get(reply, "all"));
	json_array_foreach(json_object_get(reply, "experiments"), i, item)
		add_rule_row(t, cli_text(item, "experiment"), item);
	table_print(t, stdout, cli_table_form(&o->common));
	table_free(t);
	return 0;
}

static int list_rules(struct source *s, const struct retention_options *o, struct err *err)
{
	json_t *reply = NULL;
	int rc = cli_send(s, &(struct cli_request){ "GET", "/api/v1/retention", NULL, o->common.json }, &reply, err);

	if (!rc && reply)
		rc = print_rules(o, reply);
	json_decref(reply);
	return rc;
}

/* Makes the rule of the flags: what they leave out is as in the stored one. */
static int make_flag_rule(struct source *s, const struct retention_options *o, json_t **ret, struct err *err)
{
	static const char *const keys[] = { "artifact_days", "keep_best", "trash_days", "quota_bytes" };
	json_t *reply = NULL, *rule = json_object(), *stored;
	int rc = cli_send(s, &(struct cli_request){ "GET", "/api/v1/retention", NULL, false }, &reply, err);

	stored = rc ? NULL : find_rule(reply, o->experiment);
	for (size_t i = 0; stored && i < 4; i++)
		json_object_set(rule, keys[i], json_object_get(stored, keys[i]));
	rc = rc ? rc : set_number(rule, "artifacts", o->artifacts, "artifact_days", err);
	rc = rc ? rc : set_number(rule, "trash", o->trash, "trash_days", err);
	rc = rc ? rc : set_number(rule, "keep-best", o->keep_best, "keep_best", err);
	rc = rc ? rc : set_quota(rule, o->quota, err);
	json_decref(reply);
	if (rc)
		json_decref(rule);
	else
		*ret = rule;
	return rc;
}

static int set_rule(struct source *s, const struct retention_options *o, struct err *err)
{
	json_t *rule = NULL, *reply = NULL;
	int rc = o->inherit ? 0 : make_flag_rule(s, o, &rule, err);

	if (rc)
		return rc;
	if (o->inherit)
		rule = json_pack("{s:b}", "inherit", true);
	if (o->experiment)
		json_object_set_new(rule, "experiment", json_string(o->experiment));
	rc = cli_send(s, &(struct cli_request){ "PUT", "/api/v1/retention", rule, o->common.json }, &reply, err);
	if (!rc && reply)
		rc = print_rules(o, reply);
	json_decref(reply);
	return rc;
}

/* Prints a line for each experiment, and the sum. */
static void print_preview(const struct retention_options *o, json_t *reply)
{
	struct table *t = table_new();
	json_t *item;
	size_t i;

	table_columns(t, "experiment,>artifacts,>bytes,>of all,>runs in trash,>their bytes,>runs kept,best by");
	json_array_foreach(json_object_get(reply, "experiments"), i, item) {
		const char *goal = cli_text(item, "goal");

		table_cell(t, cli_text(item, "experiment"));
		table_cellf(t, "%lld", (long long)json_integer_value(json_object_get(item, "artifacts")));
		add_bytes_cell(t, json_object_get(item, "artifact_bytes"));
		add_bytes_cell(t, json_object_get(item, "total_bytes"));
		table_cellf(t, "%lld", (long long)json_integer_value(json_object_get(item, "runs")));
		add_bytes_cell(t, json_object_get(item, "trash_bytes"));
		table_cellf(t, "%lld", (long long)json_integer_value(json_object_get(item, "kept_runs")));
		table_cellf(t, "%s%s%s", *goal ? cli_text(item, "best") : "", *goal ? " " : "newest", goal);
	}
	table_print(t, stdout, cli_table_form(&o->common));
	table_free(t);
	if (!o->common.csv)
		printf("would delete %.1f MB of artifacts, and %lld runs of the trash with %.1f MB\n",
		       json_number_value(json_object_get(reply, "artifact_bytes")) * 1e-6,
		       (long long)json_integer_value(json_object_get(reply, "runs")),
		       json_number_value(json_object_get(reply, "trash_bytes")) * 1e-6);
}

/* Prints what the rules, or those of the flags, would delete. */
static int preview_rules(struct source *s, const struct retention_options *o, struct err *err)
{
	json_t *rule = NULL, *reply = NULL, *value;
	const char *key;
	struct buf target;
	int rc = has_rule_flags(o) ? make_flag_rule(s, o, &rule, err) : 0;

	if (rc)
		return rc;
	buf_init(&target, 65536);
	buf_adds(&target, "/api/v1/retention/preview");
	source_arg(&target, "experiment", o->experiment);
	json_object_foreach(rule, key, value) {
		char *text = json_is_null(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);

		source_arg(&target, key, text);
		free(text);
	}
	rc = cli_send(s, &(struct cli_request){ "GET", target.data, NULL, o->common.json }, &reply, err);
	buf_done(&target);
	if (!rc && reply)
		print_preview(o, reply);
	json_decref(reply);
	json_decref(rule);
	return rc;
}

/* Checks the words and runs the action. */
static int run_retention_action(const struct retention_options *o, const struct flag_list *words, struct err *err)
{
	const char *verb = words->count ? words->items[0] : "";
	const bool sets = !strcmp(verb, "set"), previews = !strcmp(verb, "preview");
	struct source *s = NULL;
	int rc;

	if (*verb && !sets && !previews)
		return err_set(err, ERR_USAGE, "retention %s: expected set or preview, or no word to list the rules",
			       verb);
	if (!*verb && (has_rule_flags(o) || o->inherit || o->experiment))
		return err_set(err, ERR_USAGE, "retention: these flags are for retention set and retention preview");
	if (sets && has_rule_flags(o) == o->inherit)
		return err_set(err, ERR_USAGE, "retention set: expected --artifacts, --keep-best, --trash or --quota%s",
			       o->inherit ? " without --inherit" : ", or --inherit");
	if (o->inherit && (!sets || !o->experiment))
		return err_set(err, ERR_USAGE, "--inherit: is for retention set --experiment NAME");
	rc = source_open(&s, &o->common.source, err);
	if (!rc)
		rc = sets ? set_rule(s, o, err) : previews ? preview_rules(s, o, err) : list_rules(s, o, err);
	source_close(s);
	return rc;
}

/* Reads the flags of `dptrack retention` and runs it. */
static int run_retention_command(int argc, char **argv, struct err *err)
{
	struct retention_options o = { 0 };
	const struct flag table[] = {
		{ "experiment", FLAG_TEXT, "NAME", "the rules of this experiment (default: those for all others)",
		  &o.experiment, 0, 0 },
		{ "artifacts", FLAG_TEXT, "DAYS", "delete artifacts that were stored DAYS ago or earlier; off: never",
		  &o.artifacts, 0, 0 },
		{ "keep-best", FLAG_TEXT, "K",
		  "but not those of the experiment's K best runs by its goal, else the newest (default: 1)",
		  &o.keep_best, 0, 0 },
		{ "trash", FLAG_TEXT, "DAYS", "remove for good what was deleted DAYS ago or earlier; off: never",
		  &o.trash, 0, 0 },
		{ "quota", FLAG_TEXT, "BYTES", "delete the oldest artifacts over this size, such as 500G; off: none",
		  &o.quota, 0, 0 },
		{ "inherit", FLAG_SWITCH, "", "the experiment has no rules of its own any more", &o.inherit, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_retention, .table = table, .help = &o.common.help, .words_max = 1 };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = run_retention_action(&o, &line.words, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_retention = { .name = "retention",
					   .group = "Maintain",
					   .words = "[set | preview]",
					   .summary = "rules by which the server deletes artifacts and the trash",
					   .examples = "  dptrack retention preview --artifacts 90 --keep-best 3\n"
						       "  dptrack retention set --trash 30\n"
						       "  dptrack retention set --experiment digits --artifacts 90 "
						       "--keep-best 3\n"
						       "  dptrack retention set --experiment digits --inherit\n",
					   .run = run_retention_command };
