/* main.c: dptrain. Wiring only: arguments to a configuration, a configuration to the launcher or a subcommand. */
#include "tracker/base/log.h"

int main(void)
{
	log_init("dptrain", LOG_INFO);
	log_error("nothing to run yet");
	return 2;
}
