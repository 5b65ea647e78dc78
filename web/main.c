/* main.c: the `dptrack` program. */
#include "tracker/base/log.h"
#include "web/cli/cli.h"

int main(int argc, char **argv)
{
	log_init("dptrack", LOG_INFO);
	return cli_main(argc, argv);
}
