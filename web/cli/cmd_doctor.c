/* cmd_doctor.c: `dptrack doctor`: is the store well, and what to do when it is not. Exit 1 when something is wrong. */
#include "web/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "web/store/store.h"
#include "web/store/maintenance/check.h"

struct doctor {
	struct cli_common common;
	bool full;
};

static void print_line(const char *level, const char *name, const char *text)
{
	printf("%-8s %-10s %s\n", level, name, text);
}

static int judge(const char *worst, struct err *err)
{
	if (!strcmp(worst, "ok") || !strcmp(worst, "note"))
		return 0;
	return err_set(err, ERR_CORRUPT, "something is wrong with the store, see above");
}

static int print_report(json_t *reply, bool json, struct err *err)
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
			print_line(cli_text(f, "level"), cli_text(f, "check"), cli_text(f, "text"));
	return judge(cli_text(reply, "worst"), err);
}

/* It cannot even be opened: what can be said all the same. */
static int print_closed(const struct doctor *d, const struct err *why, struct err *err)
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
		rc = print_report(reply, d->common.json, err);
	json_decref(reply);
	arena_free(a);
	return rc;
}

static int examine(const struct doctor *d, struct err *err)
{
	const struct local_opts request = { .method = "POST", .target = "/api/v1/doctor",
					    .body = d->full ? "{\"full\":true}" : "{\"full\":false}" };
	struct err why = ERR_INIT;
	struct source *s;
	json_t *reply = NULL;
	int rc = source_open(&s, &d->common.source, &why);

	if (rc == ERR_CORRUPT || rc == ERR_DAMAGED || rc == ERR_IO || rc == ERR_NOSPC)
		return print_closed(d, &why, err);
	if (rc) {
		*err = why;
		return rc;
	}
	rc = source_json(s, &request, &reply, err);
	if (!rc)
		rc = print_report(reply, d->common.json, err);
	json_decref(reply);
	source_close(s);
	return rc;
}

static int doctor_run(int argc, char **argv, struct err *err)
{
	struct doctor d = { 0 };
	const struct flag table[] = {
		{ "full", FLAG_SWITCH, "", "every point and every index instead of samples", &d.full, 0, 0 },
		CLI_COMMON_FLAGS(&d.common),
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_doctor, .table = table, .help = &d.common.help };
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && d.common.csv)
		rc = err_set(err, ERR_USAGE, "doctor: takes --json, not --csv");
	if (!rc)
		rc = examine(&d, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_doctor = { .name = "doctor",
					.group = "Maintain",
					.words = "",
					.summary = "check the store and say what to do",
					.run = doctor_run };
