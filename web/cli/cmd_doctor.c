/* cmd_doctor.c: `dptrack doctor`: checks the store and prints what to do. Exits with 1 if something is wrong. */
#include "web/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/maintenance/maintenance.h"
#include "web/store/store.h"

struct doctor_options {
	struct cli_common common;
	bool full;
};

static void print_check_line(const char *level, const char *name, const char *text)
{
	printf("%-8s %-10s %s\n", level, name, text);
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
	char *text;
	size_t i;

	if (json) {
		text = json_dumps(reply, JSON_COMPACT);
		printf("%s\n", text ? text : "");
		free(text);
	}
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
	int rc = a ? store_locate(&paths, o->logdir ? o->logdir : "runs", o->db, err) : ERR_NOMEM;

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
					.run = run_doctor_command };
