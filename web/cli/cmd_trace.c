/* cmd_trace.c: `dptrack trace RUN`: what its ranks did when, as Chrome's JSON (chrome://tracing, ui.perfetto.dev). */
#include "web/cli/cli.h"

#include <stdio.h>

#include "tracker/base/log.h"
#include "web/server/local.h"

#define EMPTY_BYTES 64 /* a trace of no slices has fewer */

struct trace {
	struct cli_common common;
	size_t printed; /* bytes */
};

static int count_and_print(void *arg, const char *bytes, size_t n, struct err *err)
{
	((struct trace *)arg)->printed += n;
	return cli_to_stdout(NULL, bytes, n, err);
}

static int print_trace(struct trace *o, struct source *s, const char *id, struct err *err)
{
	char target[128];
	int rc;

	snprintf(target, sizeof(target), "/api/v1/runs/%s/trace", id);
	rc = source_send(s, &(struct local_opts){ .method = "GET", .target = target },
			 &(struct local_sink){ count_and_print, o }, err);
	if (rc >= 0 && o->printed < EMPTY_BYTES)
		log_warn("the run was not traced: dptrain --trace-steps 10:13 records what each rank does in "
			 "these steps");
	return rc;
}

static int trace_run(int argc, char **argv, struct err *err)
{
	struct trace o = { 0 };
	const struct flag table[] = { CLI_COMMON_FLAGS(&o.common), { 0 } };
	struct cli_line line = { .cmd = &cli_trace, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	char id[33];
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "trace: name a run by its id, the first digits of it, or its name");
	if (!rc && o.common.csv)
		rc = err_set(err, ERR_USAGE, "trace: it is JSON always; leave --csv away");
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc)
		rc = cli_find_run(s, line.words.items[0], id, err);
	if (!rc)
		rc = print_trace(&o, s, id, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_trace = { .name = "trace",
				       .group = "Inspect",
				       .words = "RUN",
				       .summary = "what ranks did when (dptrain --trace-steps), for Perfetto",
				       .run = trace_run };
