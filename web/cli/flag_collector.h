/* SPDX-License-Identifier: Apache-2.0 */
/* flag_collector.h: takes the table of flags of a command. One thread. */
#ifndef DPT_CLI_FLAG_COLLECTOR_H
#define DPT_CLI_FLAG_COLLECTOR_H

#include "web/cli/cli.h"

struct flag_collector {
	void (*take)(void *user, const struct cli_command *cmd, const struct flag *table);
	void *user;
};

/* Calls take with the command's table, which is valid only during that call; the command does nothing. */
void flag_collector_run(const struct cli_command *cmd, const struct flag_collector *c);

#endif
