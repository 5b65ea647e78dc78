/* cgroup.c: finds the group's folders by <root>/proc/self/cgroup and looks into them, from its own up to the mount: a
 * container may see its own group as the root of what is mounted, while the path is that of the machine. */
#include "tracker/system/cgroup.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/system/proc.h"

#define NO_LIMIT 9e18 /* version 1 writes the largest page-aligned number */

/* What one line "N:controllers:/path" says; version 2 has "0::/path". */
struct group {
	const char *controllers; /* not terminated */
	size_t n;
	const char *path;
	size_t n_path;
};

/* The folder of a group, or of one above it. */
struct level {
	const char *root;
	const char *mount; /* version 1: "/memory", of that controller */
	bool unified;      /* version 2 */
	const char *path;
	size_t n_path;
};

static const char *parse_line(const char *line, struct group *ret)
{
	const char *end = line + strcspn(line, "\n"), *first = memchr(line, ':', (size_t)(end - line));
	const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

	*ret = (struct group){ .path = NULL };
	if (second)
		*ret = (struct group){ .controllers = first + 1, .n = (size_t)(second - first - 1),
				       .path = second + 1, .n_path = (size_t)(end - second - 1) };
	return *end ? end + 1 : NULL;
}

/* "cpu" is one of "cpu,cpuacct". */
static bool controls(const struct group *g, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = g->controllers; at && at < g->controllers + g->n;) {
		size_t one = strcspn(at, ",:");

		if (one == n && !strncmp(at, name, n))
			return true;
		at += one + 1;
	}
	return false;
}

static bool read_level(const struct level *l, const char *file, char text[PROC_TEXT_BYTES])
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "sys/fs/cgroup%s%.*s/%s", l->mount, (int)l->n_path, l->path, file);
	return proc_read(l->root, path, text);
}

static double read_number(const struct level *l, const char *file)
{
	char text[PROC_TEXT_BYTES], *end = text;
	double v = read_level(l, file, text) ? strtod(text, &end) : NAN;

	return isnan(v) || end == text ? NAN : v; /* "max" */
}

/* The level above; false: this was the mount itself. */
static bool go_up(struct level *l)
{
	if (!l->n_path)
		return false;
	while (l->n_path && l->path[l->n_path - 1] != '/')
		l->n_path--;
	l->n_path -= l->n_path > 0;
	return true;
}

/* Calls look for the group of that controller and each above it. */
static void each_level(const char *root, const char *controller, void (*look)(void *user, const struct level *l),
		       void *user)
{
	char text[PROC_TEXT_BYTES], mount[32];
	const char *line = proc_read(root, "proc/self/cgroup", text) ? text : NULL;
	struct group g;

	snprintf(mount, sizeof(mount), "/%s", controller);
	while (line && *line) {
		struct level l;

		line = parse_line(line, &g);
		if (!g.path || (g.n && !controls(&g, controller)))
			continue;
		l = (struct level){ root, g.n ? mount : "", !g.n, g.path, g.n_path };
		l.n_path -= l.n_path && l.path[l.n_path - 1] == '/'; /* the path of the mount is "/" */
		do
			look(user, &l);
		while (go_up(&l));
	}
}

/* ---- what was waited for ---- */

static void look_throttled(void *user, const struct level *l)
{
	struct cgroup *ret = user;
	char text[PROC_TEXT_BYTES];
	double v = NAN;

	if (read_level(l, "cpu.stat", text))
		v = l->unified ? 1e-6 * proc_value(text, "throttled_usec", NULL)
			       : 1e-9 * proc_value(text, "throttled_time", NULL);
	if (!isnan(v))
		ret->throttled_s = v + (isnan(ret->throttled_s) ? 0 : ret->throttled_s);
}

static double limit_of(const struct level *l)
{
	double v = read_number(l, l->unified ? "memory.max" : "memory.limit_in_bytes");

	return v > 0 && v < NO_LIMIT ? v : NAN;
}

static double usage_of(const struct level *l)
{
	return read_number(l, l->unified ? "memory.current" : "memory.usage_in_bytes");
}

static void look_memory(void *user, const struct level *l)
{
	struct cgroup *ret = user;
	char text[PROC_TEXT_BYTES];

	if (isnan(ret->memory_wait_s) && l->unified && read_level(l, "memory.pressure", text))
		ret->memory_wait_s = 1e-6 * proc_value(text, "some", "total=");
	if (isnan(ret->memory_bytes) && !isnan(limit_of(l)))
		ret->memory_bytes = usage_of(l);
}

void cgroup_read(struct cgroup *ret, const char *root)
{
	*ret = (struct cgroup){ NAN, NAN, NAN };
	each_level(root, "cpu", look_throttled, ret);
	each_level(root, "memory", look_memory, ret);
}

/* ---- what is left ---- */

/* Version 2: "<quota> <period>" in one file; version 1: a file for each, the quota -1 when there is none. */
static void look_quota(void *user, const struct level *l)
{
	double quota = read_number(l, l->unified ? "cpu.max" : "cpu.cfs_quota_us"), period = NAN, cores;
	char text[PROC_TEXT_BYTES];
	int *least = user;

	if (!l->unified)
		period = read_number(l, "cpu.cfs_period_us");
	else if (read_level(l, "cpu.max", text) && strchr(text, ' '))
		period = strtod(strchr(text, ' '), NULL);
	cores = quota > 0 && period > 0 ? ceil(quota / period) : CGROUP_NO_QUOTA;
	*least = cores < *least ? (int)cores : *least;
}

int cgroup_cores(const char *root)
{
	int least = CGROUP_NO_QUOTA;

	each_level(root, "cpu", look_quota, &least);
	return least;
}

static void look_room(void *user, const struct level *l)
{
	double left = limit_of(l) - usage_of(l), given_up = 0, *least = user;
	char text[PROC_TEXT_BYTES];

	if (isnan(left))
		return;
	if (read_level(l, "memory.stat", text))
		given_up = proc_value(text, l->unified ? "inactive_file" : "total_inactive_file", NULL);
	left += given_up > 0 ? given_up : 0;
	*least = fmin(*least, left);
}

int64_t cgroup_room_bytes(const char *root)
{
	double least = INFINITY;

	each_level(root, "memory", look_room, &least);
	return isinf(least) ? INT64_MAX : least > 1 ? (int64_t)least : 1;
}
