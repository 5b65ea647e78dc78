/* SPDX-License-Identifier: Apache-2.0 */
/* cli.c: shared by the commands: flags, command line, help, runs by name, replies to stdout. Knows no command. */
#include "web/cli/cli.h"
#include "web/cli/cli_help.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "tracker/base/utf8.h"
#include "tracker/insight/goal.h"
#include "tracker/mem/mem.h"

/* --- flags ------------------------------------------------------------------------------------------------------ */

enum { FLAGS_NAME_MAX = 64, FLAGS_MAX = 64 };

static size_t min_of_three(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Number of edits that turn a into b (Levenshtein). */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[FLAGS_NAME_MAX + 1], n = strlen(b), i, k, diagonal, above;

	if (n > FLAGS_NAME_MAX)
		return n;
	for (k = 0; k <= n; k++)
		row[k] = k;
	for (i = 1; a[i - 1]; i++) {
		diagonal = row[0];
		row[0] = i;
		for (k = 1; k <= n; k++) {
			above = row[k];
			row[k] = min_of_three(above + 1, row[k - 1] + 1, diagonal + (a[i - 1] != b[k - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

const char *flags_nearest(const char *text, const char *const *candidates, size_t n)
{
	const char *best = NULL;
	size_t i, d, best_d = strlen(text) / 3 + 2;

	for (i = 0; i < n; i++) {
		d = strncmp(candidates[i], text, strlen(text)) ? edit_distance(text, candidates[i]) : 1;
		if (d < best_d) {
			best_d = d;
			best = candidates[i];
		}
	}
	return best;
}

/* --runs-dir, dptrain's name for the folder of runs, is --logdir. */
static bool is_flag_name(const char *want, const char *given, size_t n)
{
	size_t i;

	if (!strcmp(want, "logdir") && is_flag_name("runs-dir", given, n))
		return true;

	if (strlen(want) != n)
		return false;
	for (i = 0; i < n; i++)
		if (want[i] != (given[i] == '_' ? '-' : given[i]))
			return false;
	return true;
}

static int fail_unknown_flag(const struct flag *table, const char *given, size_t n, struct err *err)
{
	const char *names[FLAGS_MAX], *near;
	char text[FLAGS_NAME_MAX];
	size_t count = 0;

	for (; table[count].name && count < FLAGS_MAX; count++)
		names[count] = table[count].name;
	snprintf(text, sizeof(text), "%.*s", (int)n, given);
	near = flags_nearest(text, names, count);
	if (near)
		return err_set(err, ERR_USAGE, "unknown flag --%s: did you mean --%s?", text, near);
	return err_set(err, ERR_USAGE, "unknown flag --%s: see --help", text);
}

/* Stores a value by the kind of its flag. */
static int store_flag_value(const struct flag *f, const char *value, struct err *err)
{
	struct flag_list *list = f->into;
	char *end;
	long v;

	switch (f->kind) {
	case FLAG_PATH:
		if (!*value)
			return err_set(err, ERR_USAGE, "--%s needs a value: %s", f->name, f->value);
		*(const char **)f->into = value;
		return 0;
	case FLAG_TEXT:
		*(const char **)f->into = value;
		return 0;
	case FLAG_LIST:
		list->items[list->count++] = value;
		return 0;
	case FLAG_NUMBER:
		errno = 0;
		v = strtol(value, &end, 10);
		if (errno || end == value || *end || v < f->min || v > f->max)
			return err_set(err, ERR_USAGE, "--%s %s: expected a number from %d to %d", f->name, value,
				       f->min, f->max);
		*(int *)f->into = (int)v;
		return 0;
	case FLAG_SWITCH:
		break;
	}
	return err_set(err, ERR_USAGE, "--%s takes no value", f->name);
}

/* After --help only the next argument counts: the word to search. */
static void keep_help_word(int argc, char **argv, struct flag_list *words)
{
	words->count = 0;
	if (argc && argv[0][0] && strcmp(argv[0], "--help") != 0 && strcmp(argv[0], "-h") != 0)
		words->items[words->count++] = argv[0];
}

/* Parses argv[0..argc): flags by the table (a NULL name ends it), the rest into words. ERR_USAGE with a message of one
 * line. */
static int flags_read(const struct flag *table, int argc, char **argv, struct flag_list *words, struct err *err)
{
	bool only_words = false;
	const struct flag *f;
	const char *name, *value;
	size_t n;
	int i, rc;

	for (i = 0; i < argc; i++) {
		if (only_words || argv[i][0] != '-' || !argv[i][1]) {
			words->items[words->count++] = argv[i];
			continue;
		}
		if (!strcmp(argv[i], "--")) {
			only_words = true;
			continue;
		}
		name = strcmp(argv[i], "-h") ? argv[i] + strspn(argv[i], "-") : "help";
		n = strcspn(name, "=");
		value = name[n] ? name + n + 1 : NULL;
		for (f = table; f->name && !is_flag_name(f->name, name, n); f++)
			;
		if (!f->name)
			return fail_unknown_flag(table, name, n, err);
		if (f->kind == FLAG_SWITCH && !value) {
			*(bool *)f->into = true;
			if (strcmp(f->name, "help") != 0)
				continue;
			keep_help_word(argc - i - 1, argv + i + 1, words);
			return 0;
		}
		if (f->kind != FLAG_SWITCH && !value && ++i == argc)
			return err_set(err, ERR_USAGE, "--%s needs a value: %s", f->name, f->value);
		rc = store_flag_value(f, value ? value : argv[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Returns true if the table has that switch and it is set. */
static bool is_switch_set(const struct flag *table, const char *name)
{
	while (table->name && strcmp(table->name, name))
		table++;
	return table->name && *(const bool *)table->into;
}

int cli_line_read(struct cli_line *line, int argc, char **argv, struct err *err)
{
	int rc;

	line->words.items = mem_array((size_t)argc + 1, sizeof(*line->words.items));
	line->words.count = 0;
	if (cli_flags_listed(line->cmd, line->table))
		return 1;
	rc = flags_read(line->table, argc, argv, &line->words, err);
	if (!rc && *line->help) {
		rc = cli_help_print(line->cmd, line->table, line->words.count ? line->words.items[0] : NULL, err);
		rc = rc ? rc : 1;
	} else if (!rc && is_switch_set(line->table, "json") && is_switch_set(line->table, "csv")) {
		rc = err_set(err, ERR_USAGE, "--json and --csv exclude each other: use one");
	} else if (!rc && line->words.count > line->words_max) {
		rc = err_set(err, ERR_USAGE, "%s: unexpected word %s: see dptrack %s --help", line->cmd->name,
			     line->words.items[line->words_max], line->cmd->name);
	}
	return rc;
}

void cli_line_done(struct cli_line *line)
{
	free(line->words.items);
}

enum table_form cli_table_form(const struct cli_common *c)
{
	return !c->csv ? TABLE_TEXT : c->raw ? TABLE_CSV_RAW : TABLE_CSV;
}

const char *cli_text(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

const char *cli_said_best(json_t *tags, const char *key)
{
	const char *name;
	json_t *value;

	json_object_foreach(tags, name, value)
		if (!strncmp(name, GOAL_TAG, sizeof(GOAL_TAG) - 1) && !strcmp(name + sizeof(GOAL_TAG) - 1, key))
			return json_string_value(value);
	return NULL;
}

bool cli_span(const char *text, int64_t *ret_ms)
{
	static const char units[] = "smhdw";
	static const int64_t unit_ms[] = { 1000, 60000, 3600000, 86400000, 604800000 };
	const char *unit;
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || n < 0 || n > 100000 || (*end && end[1]))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (!unit && (*end || n))
		return false;
	*ret_ms = unit ? n * unit_ms[unit - units] : 0;
	return true;
}

const char *cli_count(char *text, unsigned long long n, const char *word)
{
	snprintf(text, 64, "%llu %s%s", n, word, n == 1 ? "" : "s");
	return text;
}

void cli_filter_name(struct buf *filter, const char *name)
{
	char quote = strchr(name, '\'') ? '"' : '\'';

	buf_addf(filter, "attributes.run_name = %c%s%c", quote, name, quote);
}

/* Finds the run with this name; of several the one that started last, and says so. */
static int find_run_by_name(struct source *s, const char *text, char *ret, struct err *err)
{
	struct buf target, filter;
	json_t *root = NULL, *runs;
	int rc;

	buf_init(&target, 65536);
	buf_init(&filter, 65536);
	cli_filter_name(&filter, text);
	buf_adds(&target, "/api/v1/runs");
	source_arg(&target, "filter", filter.data ? filter.data : "");
	source_arg(&target, "order_by", "start_time DESC");
	source_arg(&target, "limit", "2");
	rc = cli_get_json(s, target.data, &root, err);
	runs = json_object_get(root, "runs");
	if (rc)
		goto out;
	if (!json_array_size(runs))
		rc = err_set(err, ERR_NOENT, "no run %s: use an id, the first digits of one, a name, or a folder",
			     text);
	else
		snprintf(ret, 33, "%s", cli_text(json_array_get(runs, 0), "id"));
	if (json_array_size(runs) > 1)
		log_info("several runs have the name %s: the newest is %.8s", text, ret);
out:
	json_decref(root);
	buf_done(&filter);
	buf_done(&target);
	return rc;
}

static int find_run_by_id(struct source *s, const char *text, size_t n, char *ret, struct err *err)
{
	char target[128];
	json_t *run = NULL;
	int rc;

	if (n < 4 || n > 32 || strspn(text, "0123456789abcdef") < n)
		return ERR_NOENT;
	snprintf(target, sizeof(target), "/api/v1/runs/%.*s", (int)n, text);
	rc = cli_get_json(s, target, &run, err);
	if (!rc)
		snprintf(ret, 33, "%s", cli_text(run, "id"));
	json_decref(run);
	return rc;
}

/* Finds the run of an experiment that started last. */
static int find_newest_run(struct source *s, const char *experiment, char *ret, struct err *err)
{
	json_t *root = NULL, *run;
	struct buf target;
	int rc;

	buf_init(&target, 65536);
	buf_adds(&target, "/api/v1/runs");
	source_arg(&target, "experiment", experiment);
	source_arg(&target, "order_by", "start_time DESC");
	source_arg(&target, "limit", "1");
	rc = cli_get_json(s, target.data, &root, err);
	buf_done(&target);
	run = rc ? NULL : json_array_get(json_object_get(root, "runs"), 0);
	if (run) {
		snprintf(ret, 33, "%s", cli_text(run, "id"));
		log_info("%s is an experiment: its newest run is %s", experiment, cli_text(run, "name"));
	} else if (!rc) {
		rc = ERR_NOENT;
	}
	json_decref(root);
	return rc;
}

/* Finds a run by its folder, as the shell completes it: <experiment>/<name>-<8 digits of the id>, or an experiment's
 * folder. */
static int find_run_by_folder(struct source *s, const char *text, char *ret, struct err *err)
{
	const char *end = text + strlen(text), *at, *dash = NULL;
	char name[256];

	while (end > text && end[-1] == '/')
		end--;
	for (at = end; at > text && at[-1] != '/'; at--)
		dash = !dash && at[-1] == '-' ? at : dash;
	if (dash && end - dash == 8 && !find_run_by_id(s, dash, 8, ret, err))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(end - at), at);
	return name[0] ? find_newest_run(s, name, ret, err) : ERR_NOENT;
}

int cli_find_run(struct source *s, const char *text, char *ret, struct err *err)
{
	struct err none = ERR_INIT;
	int rc = find_run_by_id(s, text, strlen(text), ret, err);

	if (rc == ERR_NOENT)
		rc = find_run_by_name(s, text, ret, err);
	if (rc == ERR_NOENT && !find_run_by_folder(s, text, ret, &none))
		rc = 0;
	return rc;
}

int cli_to_stdout(void *arg, const char *bytes, size_t n, struct err *err)
{
	(void)arg;
	if (fwrite(bytes, 1, n, stdout) != n)
		return err_set(err, ERR_IO, "cannot write to standard output");
	return 0;
}

int cli_print(struct source *s, const struct local_opts *request, struct err *err)
{
	return source_send(s, request, &(struct local_sink){ cli_to_stdout, NULL }, err);
}

int cli_get_print(struct source *s, const char *target, struct err *err)
{
	return cli_print(s, &(struct local_opts){ .method = "GET", .target = target }, err);
}

int cli_get_json(struct source *s, const char *target, json_t **ret, struct err *err)
{
	return source_json(s, &(struct local_opts){ .method = "GET", .target = target }, ret, err);
}

int cli_drop_reply(void *arg, const char *bytes, size_t n, struct err *err)
{
	(void)arg, (void)bytes, (void)n, (void)err;
	return 0;
}

int cli_send(struct source *s, const struct cli_request *r, json_t **ret, struct err *err)
{
	char *text = r->body ? json_dumps(r->body, JSON_COMPACT) : NULL;
	const struct local_opts request = { .method = r->method, .target = r->target, .body = text };
	int rc;

	if (!r->target || (r->body && !text))
		rc = err_nomem(err, NULL);
	else if (r->print || !ret) /* a reply that is not wanted may have no body */
		rc = source_send(s, &request, &(struct local_sink){ r->print ? cli_to_stdout : cli_drop_reply, NULL },
				 err);
	else
		rc = source_json(s, &request, ret, err);
	free(text);
	json_decref(r->body);
	return rc;
}

const char *cli_status_words(json_t *run, char *text)
{
	json_t *alerts = json_object_get(run, "alerts"), *alert;
	size_t used = 0, i;

	snprintf(text, 256, "%s", cli_text(run, "status"));
	json_array_foreach(alerts, i, alert) {
		/* "failed after step 267" includes the status */
		used = !i && !strcmp(cli_text(alert, "kind"), "failed") ? 0 : strlen(text);
		snprintf(text + used, 256 - used, "%s%s%s%s", used ? ", " : "", cli_text(alert, "key"),
			 *cli_text(alert, "key") ? ": " : "", cli_text(alert, "text"));
		if (i == 2)
			break;
	}
	return text;
}
