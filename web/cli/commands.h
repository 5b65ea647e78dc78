/* commands.h: the commands of `dptrack`, by table. */
#ifndef DPT_CLI_COMMANDS_H
#define DPT_CLI_COMMANDS_H

/* Runs argv[1]; prints errors; returns the exit code: 0, 1 failed, 2 bad usage or input. */
int commands_run(int argc, char **argv);

#endif
