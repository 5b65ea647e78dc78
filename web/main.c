/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the `dptrack` program: the table of commands, its help, and the dispatch from argv. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tracker/base/log.h"
#include "web/cli/cli.h"

static const struct cli_command *const commands[] = {
#define COMMAND(name) &cli_##name,
#include "web/cli/commands.def"
#undef COMMAND
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static void print_program_help(void)
{
	const char *group = "";
	size_t i;

	printf("dptrack records, shows and compares training runs.\n\n"
	       "usage: dptrack COMMAND [FLAGS]      dptrack COMMAND --help\n");
	for (i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(group, commands[i]->group))
			printf("\n%s\n", commands[i]->group);
		group = commands[i]->group;
		printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
	}
	printf("\n  --version prints the version\n\n"
	       "'-' and '_' are equivalent in names of flags, as are --flag=value and --flag value.\n"
	       "DPTRACK_TOKEN: token of the server. DPTRACK_CA: file of certificates to trust.\n"
	       "DPTRACK_DB: address of a store in PostgreSQL. DPTRACK_URL: server for sync and import.\n"
	       "Exit codes: 0 done, 1 failed while running, 2 bad usage or input.\n");
}

static const struct cli_command *find_command(const char *name)
{
	const char *names[COMMAND_COUNT], *near;
	size_t i;

	for (i = 0; i < COMMAND_COUNT; i++) {
		names[i] = commands[i]->name;
		if (!strcmp(name, names[i]))
			return commands[i];
	}
	near = flags_nearest(name, names, COMMAND_COUNT);
	if (near)
		log_error("unknown command %s: did you mean %s?", name, near);
	else
		log_error("unknown command %s: see dptrack --help", name);
	return NULL;
}

static int exit_code_of(int code)
{
	return code == ERR_USAGE || code == ERR_NOENT || code == ERR_EXISTS || code == ERR_LIMIT ? 2 : 1;
}

/* Runs argv[1] and prints errors. Returns the exit code: 0, 1 failed, 2 bad usage or input. */
static int commands_run(int argc, char **argv)
{
	const struct cli_command *cmd;
	struct err err = ERR_INIT;
	int rc;

	signal(SIGXFSZ, SIG_IGN); /* ulimit -f: a failing write is an error, as on a full disk */
	if (argc < 2) {
		print_program_help();
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_program_help();
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("dptrack %s\n", PACKAGE_VERSION);
		return 0;
	}
	cmd = find_command(argv[1]);
	if (!cmd)
		return 2;
	rc = cmd->run(argc - 2, argv + 2, &err);
	if (!rc && (fflush(stdout) || ferror(stdout)))
		rc = err_set(&err, ERR_IO, "cannot write to standard output");
	if (!rc)
		return 0;
	fflush(stdout); /* if both go to one file, the output comes before the error */
	log_error("%s", err.text);
	return exit_code_of(err.code);
}

int main(int argc, char **argv)
{
	log_init("dptrack");
	return commands_run(argc, argv);
}
