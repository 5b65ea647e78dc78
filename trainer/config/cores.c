/* cores.c: the cores that this process may use: the scheduler's mask, limited by the quotas of its control group and
 * its parents (of a container or a batch system). */
#include <sched.h>

#include "tracker/system/cgroup.h"
#include "trainer/config/flags.h"

static int usable_cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	int quota = cgroup_cores("");

	return quota < n ? quota : n;
}

int config_cores(const struct run_config *cfg)
{
	int n = usable_cores() / cfg->local_world;

	return n > 1 ? n : 1;
}
