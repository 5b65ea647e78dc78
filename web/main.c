/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the `dptrack` program: the table of commands, its help, and the dispatch from argv. */
#include <signal.h>
#include <string.h>

#include "config.h"
#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "web/cli/cli_help.h"

static const struct cli_command *const commands[] = {
#define COMMAND(name) &cli_##name,
#include "web/cli/commands.def"
#undef COMMAND
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static const struct cli_commands all = { commands, COMMAND_COUNT };

static bool is_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMAND_COUNT && strcmp(name, commands[i]->name) != 0; i++)
		;
	return i < COMMAND_COUNT;
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

/* Handles words that are no commands: help, version, and `complete`, which the shells call. Returns false if it is
 * another one. */
static bool run_general(int argc, char **argv, int *ret, struct err *err)
{
	const char *word = argv[1], *topic = argc > 2 ? argv[2] : NULL;
	const bool help = !strcmp(word, "help");

	*ret = 0;
	if (!strcmp(word, "--version") || !strcmp(word, "-V") || !strcmp(word, "version"))
		printf("dptrack %s\n", PACKAGE_VERSION);
	else if (!strcmp(word, "complete"))
		cli_complete(&all, argc - 2, argv + 2);
	else if (!help && strcmp(word, "--help") != 0 && strcmp(word, "-h") != 0)
		return false;
	else if (!topic)
		cli_help_program(&all);
	else if (!strcmp(topic, "all"))
		cli_help_all(&all);
	else if (help && is_command(topic))
		*ret = find_command(topic)->run(argc > 3 ? 2 : 1, (char *[]){ "--help", argv[3], NULL }, err);
	else
		*ret = cli_help_search(&all, topic, err);
	return true;
}

/* Runs argv[1] and prints errors. Returns the exit code: 0, 1 failed, 2 bad usage or input. */
static int commands_run(int argc, char **argv)
{
	const struct cli_command *cmd;
	struct err err = ERR_INIT;
	int rc;

	signal(SIGXFSZ, SIG_IGN); /* ulimit -f: a failing write is an error, as on a full disk */
	if (argc < 2) {
		cli_help_program(&all);
		return 2;
	}
	if (!run_general(argc, argv, &rc, &err)) {
		cmd = find_command(argv[1]);
		if (!cmd)
			return 2;
		rc = cmd->run(argc - 2, argv + 2, &err);
	}
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
	mem_init();
	signal(SIGPIPE, SIG_DFL); /* `dptrack ls | head` ends quietly, also where the caller ignores the signal */
	return commands_run(argc, argv);
}
