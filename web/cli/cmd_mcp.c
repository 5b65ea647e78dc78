/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c: `dptrack mcp`: the Model Context Protocol, by tracker/python/dptrack/mcp. */
#include "web/cli/cli.h"

/* Reads the flags and becomes the Python module, which gets them in one spelling. */
static int run_mcp_command(int argc, char **argv, struct err *err)
{
	const char *logdir = NULL, *url = NULL, *db = NULL, *words[7];
	bool write = false, help = false;
	const struct flag table[] = {
		{ "logdir", FLAG_PATH, "DIR", "folder of runs (default: DPTRACK_RUNS_DIR, or runs)", &logdir, 0, 0 },
		{ "url", FLAG_TEXT, "URL", "use the server at URL (default: DPTRACK_URL, if no folder is given)", &url,
		  0, 0 },
		{ "db", FLAG_PATH, "FILE", "the store (default: DIR/dptrack.db); or postgresql://USER@HOST/NAME", &db,
		  0, 0 },
		{ "write", FLAG_SWITCH, "", "allow add_note, set_tag and archive_run", &write, 0, 0 },
		{ "help", FLAG_SWITCH, "", "print this help", &help, 0, 0 },
		{ 0 },
	};
	struct cli_line line = { .cmd = &cli_mcp, .table = table, .help = &help };
	int n = 0, rc = cli_line_read(&line, argc, argv, err);

	if (logdir)
		words[n++] = "--logdir", words[n++] = logdir;
	if (url)
		words[n++] = "--url", words[n++] = url;
	if (db)
		words[n++] = "--db", words[n++] = db;
	if (write)
		words[n++] = "--write";
	if (!rc)
		rc = python_run("dptrack.mcp", "[mcp]", n, words, err);
	cli_line_done(&line);
	return rc > 0 ? 0 : rc;
}

const struct cli_command cli_mcp = { .name = "mcp",
				     .group = "Serve",
				     .words = "",
				     .summary = "answer an agent: the Model Context Protocol on stdin, stdout",
				     .examples = "  dptrack mcp --logdir runs\n"
						 "  dptrack mcp --url http://127.0.0.1:6007 --write\n",
				     .run = run_mcp_command };
