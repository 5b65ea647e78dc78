/* cores.c: how many cores this process may use: the scheduler's mask, and the quotas of its control group and of those
 * above it (a container's, a batch system's), for both versions of that interface. */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/config/flags.h"

#define NO_LIMIT (1 << 20)

/* Version 2: "<quota> <period>" in one file; version 1: a file for each, the quota -1 when there is none. */
static int quota_of(const char *folder, bool unified)
{
	long long quota = 0, period = 0;
	char path[PATH_MAX + 32];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, unified ? "cpu.max" : "cpu.cfs_quota_us");
	f = fopen(path, "re");
	if (f) {
		n = fscanf(f, "%lld %lld", &quota, &period);
		fclose(f);
	}
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
	f = !unified && n == 1 ? fopen(path, "re") : NULL;
	if (f) {
		n += fscanf(f, "%lld", &period) == 1;
		fclose(f);
	}
	return n == 2 && quota > 0 && period > 0 && quota / period < NO_LIMIT ? (int)((quota + period - 1) / period)
		: NO_LIMIT;
}

/* Of the group and those above it, up to the root of what is mounted: a container sees its own group there. */
static int least_quota(const char *root, const char *group, bool unified)
{
	char folder[PATH_MAX];
	int least = NO_LIMIT;

	snprintf(folder, sizeof(folder), "%s%s", root, group);
	for (;;) {
		char *slash = strrchr(folder, '/');
		int n = quota_of(folder, unified);

		least = n < least ? n : least;
		if (strlen(folder) <= strlen(root) || !slash)
			return least;
		*slash = '\0';
	}
}

/* "0::/user.slice/job" or "4:cpu,cpuacct:/docker/…" */
int config_quota_cores(const char *groups, const char *mount)
{
	char line[PATH_MAX], root[PATH_MAX];
	int least = NO_LIMIT;
	FILE *f = fopen(groups, "re");

	while (f && fgets(line, sizeof(line), f)) {
		char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
		bool unified = !strncmp(line, "0::", 3);
		int n;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		snprintf(root, sizeof(root), "%s%s", mount, unified ? "" : "/cpu");
		n = unified || !strncmp(names, ":cpu", 4) || strstr(names, ",cpu") ? least_quota(root, group, unified)
			: NO_LIMIT;
		least = n < least ? n : least;
	}
	if (f)
		fclose(f);
	return least;
}

static int usable_cores(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	int quota = config_quota_cores("/proc/self/cgroup", "/sys/fs/cgroup");

	return quota < n ? quota : n;
}

int config_cores(const struct run_config *cfg)
{
	int n = usable_cores() / cfg->local_world;

	return n > 1 ? n : 1;
}
