/* cgroup.c: finds the group's folders by <root>/proc/self/cgroup and looks into them. A container may see its own group
 * as the root of what is mounted, while the path is that of the machine: then the mount itself is taken. */
#include "tracker/system/cgroup.h"

#include <limits.h>
#include <math.h>
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

static bool read_below(const char *root, const char *mount, const struct group *g, const char *file,
		       char text[PROC_TEXT_BYTES])
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "sys/fs/cgroup%s%.*s/%s", mount, (int)g->n_path, g->path, file);
	if (proc_read(root, path, text))
		return true;
	snprintf(path, sizeof(path), "sys/fs/cgroup%s/%s", mount, file);
	return proc_read(root, path, text);
}

static double below_limit(const char *limit, const char *usage)
{
	double most = strtod(limit, NULL); /* "max": 0 */

	return most > 0 && most < NO_LIMIT ? strtod(usage, NULL) : NAN;
}

static void read_unified(struct cgroup *ret, const char *root, const struct group *g)
{
	char text[PROC_TEXT_BYTES], usage[PROC_TEXT_BYTES];

	if (read_below(root, "", g, "cpu.stat", text) && !isnan(proc_value(text, "throttled_usec", NULL)))
		ret->throttled_s = 1e-6 * proc_value(text, "throttled_usec", NULL);
	if (read_below(root, "", g, "memory.pressure", text))
		ret->memory_wait_s = 1e-6 * proc_value(text, "some", "total=");
	if (read_below(root, "", g, "memory.max", text) && read_below(root, "", g, "memory.current", usage))
		ret->memory_bytes = below_limit(text, usage);
}

static void read_older(struct cgroup *ret, const char *root, const struct group *g)
{
	char text[PROC_TEXT_BYTES], usage[PROC_TEXT_BYTES];

	if (controls(g, "cpu") && read_below(root, "/cpu", g, "cpu.stat", text))
		ret->throttled_s = 1e-9 * proc_value(text, "throttled_time", NULL);
	if (controls(g, "memory") && read_below(root, "/memory", g, "memory.limit_in_bytes", text) &&
	    read_below(root, "/memory", g, "memory.usage_in_bytes", usage))
		ret->memory_bytes = below_limit(text, usage);
}

void cgroup_read(struct cgroup *ret, const char *root)
{
	char text[PROC_TEXT_BYTES];
	const char *line = text;
	struct group g;

	*ret = (struct cgroup){ NAN, NAN, NAN };
	if (!proc_read(root, "proc/self/cgroup", text))
		return;
	while (line && *line) {
		line = parse_line(line, &g);
		if (g.path && !g.n)
			read_unified(ret, root, &g);
		else if (g.path)
			read_older(ret, root, &g);
	}
}
