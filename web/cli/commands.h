/* commands.h: runs a command of `dptrack` by its name. */
#ifndef DPT_CLI_COMMANDS_H
#define DPT_CLI_COMMANDS_H

/* Runs argv[1] and prints errors. Returns the exit code: 0, 1 failed, 2 bad usage or input. */
int commands_run(int argc, char **argv);

#endif
