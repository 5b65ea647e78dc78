/* main.c: the `dptrack` program. */
#include "tracker/base/log.h"
#include "web/cli/commands.h"

int main(int argc, char **argv)
{
	log_init("dptrack");
	return commands_run(argc, argv);
}
