/* cmd_trace.c: `dptrack trace RUN`: prints the trace of its ranks as Chrome's JSON (chrome://tracing, ui.perfetto.dev).
 */
#include "web/cli/cli.h"

#include <stdio.h>

#include "tracker/base/log.h"
#include "web/server/local.h"

#define EMPTY_BYTES 64 /* a trace without slices is shorter */

struct trace_options {
	struct cli_common common;
	size_t printed; /* bytes */
};

static int count_and_print_trace(void *arg, const char *bytes, size_t n, struct err *err)
{
	((struct trace_options *)arg)->printed += n;
	return cli_to_stdout(NULL, bytes, n, err);
}

static int print_run_trace(struct trace_options *o, struct source *s, const char *id, struct err *err)
{
	char target[128];
	int rc;

	snprintf(target, sizeof(target), "/api/v1/runs/%s/trace", id);
	rc = source_send(s, &(struct local_opts){ .method = "GET", .target = target },
			 &(struct local_sink){ count_and_print_trace, o }, err);
	if (rc >= 0 && o->printed < EMPTY_BYTES)
		log_warn("the run has no trace: dptrain --trace-steps 10:13 records what each rank does in "
			 "these steps");
	return rc;
}

/* Reads the flags and prints the trace. */
static int run_trace_command(int argc, char **argv, struct err *err)
{
	struct trace_options o = { 0 };
	const struct flag table[] = { CLI_COMMON_FLAGS(&o.common), { 0 } };
	struct cli_line line = { .cmd = &cli_trace, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	char id[33];
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "trace: expected a run: an id, the first digits of one, or a name");
	if (!rc && o.common.csv)
		rc = err_set(err, ERR_USAGE, "trace: --csv is not supported: the output is always JSON");
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc)
		rc = cli_find_run(s, line.words.items[0], id, err);
	if (!rc)
		rc = print_run_trace(&o, s, id, err);
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_trace = { .name = "trace",
				       .group = "Inspect",
				       .words = "RUN",
				       .summary = "print the trace of a run (dptrain --trace-steps) for Perfetto",
				       .run = run_trace_command };
