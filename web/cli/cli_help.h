/* SPDX-License-Identifier: Apache-2.0 */
/* cli_help.h: --help of a command and of the program, search in both, and the candidates for completion. */
#ifndef DPT_CLI_CLI_HELP_H
#define DPT_CLI_CLI_HELP_H

#include "web/cli/cli.h"

/* Prints the help of a command. word: NULL or "all" everything, otherwise the flags that mention it; ERR_USAGE: none
 * does. */
int cli_help_print(const struct cli_command *cmd, const struct flag *table, const char *word, struct err *err);

/* The commands of the program, for the functions below. */
struct cli_commands {
	const struct cli_command *const *items;
	size_t count;
};

/* Prints the list of commands and what all have in common. */
void cli_help_program(const struct cli_commands *all);

/* Prints the help of every command. */
void cli_help_all(const struct cli_commands *all);

/* Prints the commands and flags that mention the word. ERR_USAGE: nothing does. */
int cli_help_search(const struct cli_commands *all, const char *word, struct err *err);

/* Prints the candidates for the last of the words that follow the program's name, one a line: the candidate, a tab,
 * what it is. A line ":files" or ":folders" asks the shell for names of files or folders. */
void cli_complete(const struct cli_commands *all, int argc, char **argv);

/* Where the tables of flags go while help searches or completion collects: true if the line must not be read any
 * further. For cli_line_read. */
bool cli_flags_listed(const struct cli_command *cmd, const struct flag *table);

/* ---- the tables of flags of commands, for help and completion. One thread. ---- */

struct flag_collector {
	void (*take)(void *user, const struct cli_command *cmd, const struct flag *table);
	void *user;
};

/* Calls take with the command's table, which is valid only during that call; the command does nothing. */
void flag_collector_run(const struct cli_command *cmd, const struct flag_collector *c);

#endif
