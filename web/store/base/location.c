/* location.c: the address of the artifacts of a run or logged model. */
#include "web/store/base/location.h"

#include <string.h>

const char *location_of(struct arena *a, const char *location, int64_t experiment, const char *below)
{
	size_t all = strlen(location), n = strchr(location, ':') ? strcspn(location, "?") : all;

	if (!all)
		return arena_printf(a, "mlflow-artifacts:/%lld/%s", (long long)experiment, below);
	return arena_printf(a, "%.*s%s%s%s", (int)n, location, n && location[n - 1] == '/' ? "" : "/", below,
			    location + n);
}
