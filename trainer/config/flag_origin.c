/* flag_origin.c: origins of values. */
#include "trainer/config/config.h"

const char *config_origin_name(enum config_origin o)
{
	static const char *const names[] = { [ORIGIN_DEFAULT] = "default",
					     [ORIGIN_FILE] = "config file",
					     [ORIGIN_ENVIRONMENT] = "environment",
					     [ORIGIN_FLAG] = "flag",
					     [ORIGIN_DERIVED] = "derived" };

	return names[o];
}

bool config_given(const struct run_config *cfg, enum flag_id id)
{
	return cfg->origin[id] != ORIGIN_DEFAULT && cfg->origin[id] != ORIGIN_DERIVED;
}
