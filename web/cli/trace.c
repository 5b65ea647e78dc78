/* trace.c: `dptrack trace RUN`: what its ranks did when, as Chrome's JSON (chrome://tracing, ui.perfetto.dev). */
#include "web/cli/cli.h"

#include <stdio.h>

struct trace {
	struct cli_common common;
};

static int trace_run(int argc, char **argv, struct err *err)
{
	struct trace o = { 0 };
	const struct flag table[] = { CLI_COMMON_FLAGS(&o.common), { 0 } };
	struct cli_line line = { .cmd = &cli_trace, .table = table, .help = &o.common.help, .words_max = 1 };
	struct source *s = NULL;
	char id[33], target[128];
	int rc = cli_line_read(&line, argc, argv, err);

	if (!rc && !line.words.count)
		rc = err_set(err, ERR_USAGE, "trace: name a run by its id, the first digits of it, or its name");
	if (!rc && o.common.csv)
		rc = err_set(err, ERR_USAGE, "trace: it is JSON always; leave --csv away");
	if (!rc)
		rc = source_open(&s, &o.common.source, err);
	if (!rc)
		rc = cli_find_run(s, line.words.items[0], id, err);
	if (!rc) {
		snprintf(target, sizeof(target), "/api/v1/runs/%s/trace", id);
		rc = cli_get_print(s, target, err);
	}
	source_close(s);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_trace = { .name = "trace",
				       .group = "Look",
				       .words = "RUN",
				       .summary = "what ranks did when (dptrain --trace-steps), for Perfetto",
				       .run = trace_run };
