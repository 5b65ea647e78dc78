/* cmd_rm.c: `dptrack rm` and `dptrack restore`: hides runs and brings them back. Nothing is lost before `dptrack gc`. */
#include "web/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "web/cli/choose.h"
#include "web/cli/table.h"

enum { RM_SHOWN = 20 };

struct rm {
	struct cli_common common;
	struct choose_opts pick;
	bool yes, restore;
};

static void show(json_t *runs)
{
	struct table *t = table_new();
	char text[32];
	json_t *run;
	size_t i;

	if (!t)
		return;
	table_column(t, "id", false);
	table_column(t, "name", false);
	table_column(t, "experiment", false);
	table_column(t, "started", false);
	table_column(t, "status", false);
	json_array_foreach(runs, i, run) {
		if (i == RM_SHOWN)
			break;
		table_cellf(t, "%.8s", cli_text(run, "id"));
		table_cell(t, cli_text(run, "name"));
		table_cell(t, cli_text(run, "experiment"));
		table_cell(t, table_time(text, json_integer_value(json_object_get(run, "start_time"))));
		table_cell(t, cli_text(run, "status"));
	}
	table_print(t, stderr, false);
	table_free(t);
	if (json_array_size(runs) > RM_SHOWN)
		fprintf(stderr, "(and %zu more)\n", json_array_size(runs) - RM_SHOWN);
}

/* 1 go on, 0 no. */
static int ask(const struct rm *o, json_t *runs, struct err *err)
{
	char answer[16], text[64];

	if (o->yes)
		return 1;
	if (!isatty(STDIN_FILENO))
		return err_set(err, ERR_USAGE, "%s: give --yes where nobody can be asked",
			       o->restore ? "restore" : "rm");
	show(runs);
	fprintf(stderr, "%s %s? [y/N] ", o->restore ? "restore" : "delete",
		cli_count(text, json_array_size(runs), "run"));
	if (!fgets(answer, sizeof(answer), stdin))
		return 0;
	return answer[0] == 'y' || answer[0] == 'Y';
}

static int change(struct source *s, const struct rm *o, json_t *run, struct err *err)
{
	struct local_opts request = { .method = o->restore ? "POST" : "DELETE" };
	char target[128];
	json_t *reply = NULL;
	int rc;

	snprintf(target, sizeof(target), "/api/v1/runs/%.32s%s", cli_text(run, "id"), o->restore ? "/restore" : "");
	request.target = target;
	rc = source_json(s, &request, &reply, err);
	json_decref(reply);
	return rc;
}

static void report(const struct rm *o, json_t *done)
{
	size_t n = json_array_size(done), i;
	json_t *run;

	if (o->common.json) {
		json_t *ids = json_array(), *root = json_pack("{s:o}", "runs", ids);

		json_array_foreach(done, i, run)
			json_array_append(ids, json_object_get(run, "id"));
		json_dumpf(root, stdout, 0);
		printf("\n");
		json_decref(root);
		return;
	}
	if (o->common.csv) {
		struct table *t = table_new();

		if (!t)
			return;
		table_column(t, "run_id", false);
		table_column(t, "run_name", false);
		json_array_foreach(done, i, run) {
			table_cell(t, cli_text(run, "id"));
			table_cell(t, cli_text(run, "name"));
		}
		table_print(t, stdout, true);
		table_free(t);
	} else if (!n) {
		printf("nothing %s\n", o->restore ? "restored" : "deleted");
	} else if (o->restore) {
		printf("%zu run%s restored\n", n, n == 1 ? "" : "s");
	} else {
		printf("%zu run%s deleted; dptrack restore brings back what gc has not removed\n", n,
		       n == 1 ? "" : "s");
	}
}

static int act(struct rm *o, struct err *err)
{
	json_t *runs = NULL, *done = json_array(), *run;
	struct source *s = NULL;
	size_t i;
	int rc = source_open(&s, &o->common.source, err), yes = 0;

	if (!rc)
		rc = choose_runs(s, &o->pick, &runs, err);
	if (!rc && json_array_size(runs))
		yes = rc = ask(o, runs, err);
	if (rc > 0)
		rc = 0;
	if (yes > 0)
		json_array_foreach(runs, i, run) {
			rc = change(s, o, run, err);
			if (rc)
				break;
			json_array_append(done, run);
		}
	if (!rc || json_array_size(done))
		report(o, done);
	json_decref(done);
	json_decref(runs);
	source_close(s);
	return rc;
}

static int run_either(int argc, char **argv, bool restore, struct err *err)
{
	struct rm o = { .restore = restore, .pick = { .deleted = restore } };
	const struct flag table[] = {
		CHOOSE_FLAGS(&o.pick),
		{ "yes", FLAG_SWITCH, "", "do not ask", &o.yes, 0, 0 },
		CLI_COMMON_FLAGS(&o.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = restore ? &cli_restore : &cli_rm, .table = table, .help = &o.common.help,
				 .words_max = (size_t)argc };
	int rc = cli_line_read(&line, argc, argv, err);

	o.pick.names = line.words.items;
	o.pick.name_count = line.words.count;
	if (!rc)
		rc = act(&o, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

static int rm_run(int argc, char **argv, struct err *err)
{
	return run_either(argc, argv, false, err);
}

static int restore_run(int argc, char **argv, struct err *err)
{
	return run_either(argc, argv, true, err);
}

const struct cli_command cli_rm = { .name = "rm",
				    .group = "Edit",
				    .words = "[RUN...]",
				    .summary = "delete runs; they can be restored",
				    .run = rm_run };

const struct cli_command cli_restore = { .name = "restore",
					 .group = "Edit",
					 .words = "[RUN...]",
					 .summary = "bring deleted runs back",
					 .run = restore_run };
