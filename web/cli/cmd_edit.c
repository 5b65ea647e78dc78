/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_edit.c: the commands that change runs: `dptrack tag` sets, removes and lists tags; `dptrack rm` and `dptrack
 * restore` mark runs as deleted and undelete them. `dptrack gc` removes them for good. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/json_print.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "web/cli/cli.h"

/* --- selection by name, prefix of an id, or filter -------------------------------------------------------------- */

struct choose_opts {
	const char *const *names; /* ids, prefixes of ids, names */
	size_t name_count;
	const char *experiment, *filter; /* NULL: none; either adds every run that matches */
	bool deleted;			 /* among deleted runs, else among the others */
};

#define CHOOSE_FLAGS(o)                                                                                               \
	{ "experiment", FLAG_TEXT, "NAME", "every run of the experiment", &(o)->experiment, 0, 0 },                 \
	{ "filter", FLAG_TEXT, "TEXT", "every run that matches, such as: params.lr = '0.1'", &(o)->filter, 0, 0 }

enum { CHOOSE_PAGE = 1000, CHOOSE_SHOWN = 5 };

static bool has_chosen_run(json_t *runs, const char *id)
{
	json_t *run;
	size_t i;

	json_array_foreach(runs, i, run)
		if (!strcmp(cli_text(run, "id"), id))
			return true;
	return false;
}

/* Appends every page of the list at the target. */
static int add_listed_runs(struct source *s, struct buf *target, json_t *to, struct err *err)
{
	size_t base = target->len, i;
	const char *token = "";
	json_t *page = NULL, *run;
	int rc = 0;

	while (!rc && token) {
		target->len = base;
		source_arg(target, "page_token", *token ? token : NULL);
		json_decref(page);
		page = NULL;
		rc = buf_failed(target) ? err_nomem(err, NULL) : cli_get_json(s, target->data, &page, err);
		json_array_foreach(json_object_get(page, "runs"), i, run)
			if (!has_chosen_run(to, cli_text(run, "id")))
				json_array_append(to, run);
		token = json_string_value(json_object_get(page, "next_page_token"));
		target->data[base] = '\0';
	}
	json_decref(page);
	return rc;
}

/* Appends the runs that match the experiment and the filter. */
static int add_matching_runs(struct source *s, const struct choose_opts *o, json_t *to, struct err *err)
{
	struct buf target;
	int rc;

	buf_init(&target, 1 << 20);
	buf_addf(&target, "/api/v1/runs?limit=%d&deleted=%s", CHOOSE_PAGE, o->deleted ? "only" : "no");
	source_arg(&target, "experiment", o->experiment);
	source_arg(&target, "filter", o->filter);
	rc = add_listed_runs(s, &target, to, err);
	buf_done(&target);
	return rc;
}

/* Appends the run whose id has the prefix `name`, or whose name it is. */
static int add_named_run(struct source *s, const struct choose_opts *o, const char *name, json_t *to, struct err *err)
{
	struct choose_opts by = { .deleted = o->deleted };
	json_t *found = json_array();
	struct buf filter;
	char prefix[80];
	int rc = 0;

	if (text_is_hex(name, 4, 32)) {
		snprintf(prefix, sizeof(prefix), "attributes.run_id LIKE '%.32s%%'", name);
		by.filter = prefix;
		rc = add_matching_runs(s, &by, found, err);
	}
	if (!rc && !json_array_size(found)) {
		buf_init(&filter, 65536);
		cli_filter_name(&filter, name);
		by.filter = filter.data ? filter.data : "";
		rc = add_matching_runs(s, &by, found, err);
		buf_done(&filter);
	}
	if (!rc && !json_array_size(found))
		rc = err_set(err, ERR_NOENT, "no %srun %s: use an id, the first digits of one, or a name",
			     o->deleted ? "deleted " : "", name);
	else if (!rc && json_array_size(found) > 1)
		rc = err_set(err, ERR_USAGE,
			     "%zu runs match %s: use an id (see dptrack ls), or select all of them with --filter",
			     json_array_size(found), name);
	else if (!rc && !has_chosen_run(to, cli_text(json_array_get(found, 0), "id")))
		json_array_append(to, json_array_get(found, 0));
	json_decref(found);
	return rc;
}

/* *ret: a JSON array of runs as /runs lists them, without duplicates, in the order selected; the caller owns it
 * (json_decref). ERR_NOENT: no run has a name. ERR_USAGE: several runs have it, or nothing is selected. */
static int choose_runs(struct source *s, const struct choose_opts *o, json_t **ret, struct err *err)
{
	json_t *runs = json_array();
	size_t i;
	int rc = 0;

	if (!o->name_count && !o->experiment && !o->filter)
		rc = err_set(err, ERR_USAGE, "no runs selected: use ids or names, --experiment or --filter");
	for (i = 0; i < o->name_count && !rc; i++)
		rc = add_named_run(s, o, o->names[i], runs, err);
	if (!rc && (o->experiment || o->filter))
		rc = add_matching_runs(s, o, runs, err);
	if (rc)
		json_decref(runs);
	else
		*ret = runs;
	return rc;
}

/* --- tag -------------------------------------------------------------------------------------------------------- */

struct tag_options {
	struct cli_common common;
	struct choose_opts pick;
	struct flag_list removed;
	const char **sets; /* KEY=VALUE */
	size_t set_count;
};

static void build_tag_target(struct buf *target, json_t *run, const char *key, size_t key_len)
{
	char *copy = mem_strndup(key, key_len);

	buf_init(target, 65536);
	buf_addf(target, "/api/v1/runs/%.32s/tags/", cli_text(run, "id"));
	source_escape(target, copy);
	free(copy);
}

static int set_run_tag(struct source *s, json_t *run, const char *set, struct err *err)
{
	const char *eq = strchr(set, '=');
	json_t *body = json_pack("{s:s}", "value", eq + 1);
	struct buf target;
	int rc;

	if (!body)
		return err_set(err, ERR_USAGE, "tag: the value of %.*s must be UTF-8", (int)(eq - set), set);
	build_tag_target(&target, run, set, (size_t)(eq - set));
	rc = cli_send(s, &(struct cli_request){ .method = "PUT", .target = target.data, .body = body }, NULL, err);
	buf_done(&target);
	return rc;
}

static int remove_run_tag(struct source *s, json_t *run, const char *key, struct err *err)
{
	struct buf target;
	int rc;

	build_tag_target(&target, run, key, strlen(key));
	rc = cli_send(s, &(struct cli_request){ .method = "DELETE", .target = target.data }, NULL, err);
	buf_done(&target);
	return rc;
}

static int apply_tag_changes(struct source *s, const struct tag_options *o, json_t *runs, struct err *err)
{
	json_t *run;
	size_t i, k;
	int rc = 0;

	json_array_foreach(runs, i, run) {
		for (k = 0; k < o->set_count && !rc; k++)
			rc = set_run_tag(s, run, o->sets[k], err);
		for (k = 0; k < o->removed.count && !rc; k++)
			rc = remove_run_tag(s, run, o->removed.items[k], err);
		if (rc)
			return rc;
	}
	return 0;
}

static void print_tags_json(json_t *runs)
{
	json_t *root = json_object(), *run;
	size_t i;

	json_array_foreach(runs, i, run)
		json_object_set(root, cli_text(run, "id"), json_object_get(run, "tags"));
	json_print(root, 0);
}

/* Prints the tags of the runs as a table or CSV. */
static void print_tags_table(const struct tag_options *o, json_t *runs)
{
	struct table *t = table_new();
	json_t *run, *value;
	const char *key;
	size_t i;

	table_columns(t, "id,name,tag,value");
	json_array_foreach(runs, i, run)
		json_object_foreach(json_object_get(run, "tags"), key, value) {
			if (o->common.csv)
				table_cell(t, cli_text(run, "id"));
			else
				table_cellf(t, "%.8s", cli_text(run, "id"));
			table_cell(t, cli_text(run, "name"));
			table_cell(t, key);
			table_cell(t, json_string_value(value));
		}
	table_print(t, stdout, cli_table_form(&o->common));
	table_free(t);
}

static int apply_tag_options(const struct tag_options *o, struct err *err)
{
	struct source *s = NULL;
	json_t *runs = NULL;
	int rc = source_open(&s, &o->common.source, err);

	if (!rc)
		rc = choose_runs(s, &o->pick, &runs, err);
	if (!rc && (o->set_count || o->removed.count))
		rc = apply_tag_changes(s, o, runs, err);
	else if (!rc && o->common.json)
		print_tags_json(runs);
	else if (!rc)
		print_tags_table(o, runs);
	json_decref(runs);
	source_close(s);
	return rc;
}

/* Words with = are tags to set, the others select runs. */
static int split_tag_words(struct tag_options *o, const struct flag_list *words, struct err *err)
{
	const char **names = words->items;
	size_t i;

	for (i = 0; i < words->count; i++) {
		const char *word = words->items[i];

		if (*word == '=')
			return err_set(err, ERR_USAGE, "tag %s: the key is missing: expected KEY=VALUE", word);
		if (strchr(word, '='))
			o->sets[o->set_count++] = word;
		else
			names[o->pick.name_count++] = word;
	}
	o->pick.names = names;
	return 0;
}

/* Reads the flags and lists or changes tags. */
static int run_tag_command(int argc, char **argv, struct err *err)
{
	struct tag_options o = { .sets = mem_array((size_t)argc + 1, sizeof(*o.sets)),
				 .removed = { .items = mem_array((size_t)argc + 1, sizeof(*o.removed.items)) } };
	const struct flag table[] = {
		CHOOSE_FLAGS(&o.pick),
		{ "remove", FLAG_LIST, "KEY", "remove this tag; may be repeated", &o.removed, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_tag, .table = table, .help = &o.common.help, .words_max = (size_t)argc };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc)
		rc = split_tag_words(&o, &line.words, err);
	if (!rc)
		rc = apply_tag_options(&o, err);
	cli_line_done(&line);
	free(o.sets);
	free(o.removed.items);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_tag = { .name = "tag",
				     .group = "Edit",
				     .words = "[RUN...] [KEY=VALUE...]",
				     .summary = "set, remove or list tags of runs",
				     .examples = "  dptrack tag red-fox stage=final\n"
						 "  dptrack tag red-fox --remove stage\n",
				     .run = run_tag_command };

/* --- rm, restore ------------------------------------------------------------------------------------------------ */

enum { RM_SHOWN = 20 };

struct rm_options {
	struct cli_common common;
	struct choose_opts pick;
	bool yes, restore;
};

/* Prints a table of the first runs to stderr, for the question. */
static void print_chosen_runs(json_t *runs)
{
	struct table *t = table_new();
	char text[32];
	json_t *run;
	size_t i;

	table_columns(t, "id,name,experiment,started,status");
	json_array_foreach(runs, i, run) {
		if (i == RM_SHOWN)
			break;
		table_cellf(t, "%.8s", cli_text(run, "id"));
		table_cell(t, cli_text(run, "name"));
		table_cell(t, cli_text(run, "experiment"));
		table_cell(t, table_time(text, json_integer_value(json_object_get(run, "start_time"))));
		table_cell(t, cli_text(run, "status"));
	}
	table_print(t, stderr, TABLE_TEXT);
	table_free(t);
	if (json_array_size(runs) > RM_SHOWN)
		fprintf(stderr, "(and %zu more)\n", json_array_size(runs) - RM_SHOWN);
}

/* Asks the user unless --yes is set. Returns 1 to continue, 0 for no. */
static int confirm_deletion(const struct rm_options *o, json_t *runs, struct err *err)
{
	char answer[16], text[64];

	if (o->yes)
		return 1;
	if (!isatty(STDIN_FILENO))
		return err_set(err, ERR_USAGE, "%s: no terminal to ask for confirmation: use --yes",
			       o->restore ? "restore" : "rm");
	print_chosen_runs(runs);
	fprintf(stderr, "%s %s? [y/N] ", o->restore ? "restore" : "delete",
		cli_count(text, json_array_size(runs), "run"));
	if (!fgets(answer, sizeof(answer), stdin))
		return 0;
	return answer[0] == 'y' || answer[0] == 'Y';
}

static int submit_run_change(struct source *s, const struct rm_options *o, json_t *run, struct err *err)
{
	char target[128];

	snprintf(target, sizeof(target), "/api/v1/runs/%.32s%s", cli_text(run, "id"), o->restore ? "/restore" : "");
	return cli_send(s, &(struct cli_request){ .method = o->restore ? "POST" : "DELETE", .target = target }, NULL,
			err);
}

/* Prints the runs that were changed as JSON, CSV or a sentence. */
static void print_changed_runs(const struct rm_options *o, json_t *done)
{
	size_t n = json_array_size(done), i;
	json_t *run;

	if (o->common.json) {
		json_t *ids = json_array(), *root = json_pack("{s:o}", "runs", ids);

		json_array_foreach(done, i, run)
			json_array_append(ids, json_object_get(run, "id"));
		json_print(root, 0);
		return;
	}
	if (o->common.csv) {
		struct table *t = table_new();

		table_columns(t, "run_id,run_name");
		json_array_foreach(done, i, run) {
			table_cell(t, cli_text(run, "id"));
			table_cell(t, cli_text(run, "name"));
		}
		table_print(t, stdout, cli_table_form(&o->common));
		table_free(t);
	} else if (!n) {
		printf("nothing %s\n", o->restore ? "restored" : "deleted");
	} else {
		printf("%zu run%s %s\n", n, n == 1 ? "" : "s",
		       o->restore ? "restored" : "deleted; dptrack restore undeletes them until dptrack gc runs");
	}
}

/* Finds the runs, asks, and deletes or restores them one by one. */
static int delete_chosen_runs(struct rm_options *o, struct err *err)
{
	json_t *runs = NULL, *done = json_array(), *run;
	struct source *s = NULL;
	size_t i;
	int rc = source_open(&s, &o->common.source, err), yes = 0;

	if (!rc)
		rc = choose_runs(s, &o->pick, &runs, err);
	if (!rc && json_array_size(runs))
		yes = rc = confirm_deletion(o, runs, err);
	if (rc > 0)
		rc = 0;
	if (yes > 0)
		json_array_foreach(runs, i, run) {
			rc = submit_run_change(s, o, run, err);
			if (rc)
				break;
			json_array_append(done, run);
		}
	if (!rc || json_array_size(done))
		print_changed_runs(o, done);
	json_decref(done);
	json_decref(runs);
	source_close(s);
	return rc;
}

static int run_rm_or_restore(int argc, char **argv, bool restore, struct err *err)
{
	struct rm_options o = { .restore = restore, .pick = { .deleted = restore } };
	const struct flag table[] = {
		CHOOSE_FLAGS(&o.pick),
		{ "yes", FLAG_SWITCH, "", "do not ask for confirmation", &o.yes, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = restore ? &cli_restore : &cli_rm, .table = table, .help = &o.common.help,
				 .words_max = (size_t)argc };
	int rc = cli_line_read(&line, argc, argv, err);

	o.pick.names = line.words.items;
	o.pick.name_count = line.words.count;
	if (!rc)
		rc = delete_chosen_runs(&o, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

static int run_rm_command(int argc, char **argv, struct err *err)
{
	return run_rm_or_restore(argc, argv, false, err);
}

static int run_restore_command(int argc, char **argv, struct err *err)
{
	return run_rm_or_restore(argc, argv, true, err);
}

const struct cli_command cli_rm = { .name = "rm",
				    .group = "Edit",
				    .words = "[RUN...]",
				    .summary = "delete runs; dptrack restore undeletes them",
				    .examples = "  dptrack rm red-fox blue-owl\n"
						"  dptrack rm --filter \"attributes.status = 'FAILED'\" --yes\n",
				    .run = run_rm_command };

const struct cli_command cli_restore = { .name = "restore",
					 .group = "Edit",
					 .words = "[RUN...]",
					 .summary = "undelete runs",
					 .examples = "  dptrack restore red-fox\n"
						     "  dptrack restore --experiment digits --yes\n",
					 .run = run_restore_command };
