/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c: finds the group's folders with <root>/proc/self/cgroup and reads them, from its own up to the mount. A
 * container may see its own group as the mount's root, although the path is the machine's. */
#include "tracker/system/cgroup.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file.h"

bool proc_read(const char *root, const char *path, char text[PROC_TEXT_BYTES])
{
	char whole[PATH_MAX];
	ssize_t n = -1, got;
	int fd;

	text[0] = '\0';
	if (!file_join(whole, sizeof(whole), root, path))
		return false;
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (n = 0; n < PROC_TEXT_BYTES - 1; n += got) { /* some files return one line per read */
		got = read(fd, text + n, (size_t)(PROC_TEXT_BYTES - 1 - n));
		if (got <= 0)
			break;
	}
	close(fd);
	text[n] = '\0';
	return n > 0;
}

static double parse_number_or_nan(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	return end == text ? NAN : v;
}

double proc_number(const char *root, const char *path)
{
	char text[PROC_TEXT_BYTES];

	return proc_read(root, path, text) ? parse_number_or_nan(text) : NAN;
}

double proc_value(const char *text, const char *key, const char *mark)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at, *end;

		line += *line == '\n';
		if (strncmp(line, key, n) || !strchr(" :\t", line[n]))
			continue;
		end = line + strcspn(line, "\n");
		at = mark ? strstr(line, mark) : line + n + (line[n] == ':');
		return at && at < end ? parse_number_or_nan(at + (mark ? strlen(mark) : 0)) : NAN;
	}
	return NAN;
}

/* ---- groups ---- */

#define NO_LIMIT 9e18 /* version 1 writes the largest page-aligned number */

/* A line "N:controllers:/path"; version 2 has "0::/path". */
struct cgroup_line {
	const char *controllers; /* not terminated */
	size_t n;
	const char *path;
	size_t n_path;
};

/* The folder of a group or of an ancestor. */
struct cgroup_level {
	const char *root;
	const char *mount; /* version 1: "/memory", by controller */
	bool unified;	   /* version 2 */
	const char *path;
	size_t n_path;
};

static const char *parse_cgroup_line(const char *line, struct cgroup_line *ret)
{
	const char *end = line + strcspn(line, "\n"), *first = memchr(line, ':', (size_t)(end - line));
	const char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

	*ret = (struct cgroup_line){ .path = NULL };
	if (second)
		*ret = (struct cgroup_line){ .controllers = first + 1, .n = (size_t)(second - first - 1),
				       .path = second + 1, .n_path = (size_t)(end - second - 1) };
	return *end ? end + 1 : NULL;
}

/* "cpu" is one of "cpu,cpuacct". */
static bool has_controller(const struct cgroup_line *g, const char *name)
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

static bool read_level_file(const struct cgroup_level *l, const char *file, char text[PROC_TEXT_BYTES])
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "sys/fs/cgroup%s%.*s/%s", l->mount, (int)l->n_path, l->path, file);
	return proc_read(l->root, path, text);
}

static double read_level_number(const struct cgroup_level *l, const char *file)
{
	char text[PROC_TEXT_BYTES], *end = text;
	double v = read_level_file(l, file, text) ? strtod(text, &end) : NAN;

	return isnan(v) || end == text ? NAN : v; /* "max" */
}

/* Moves to the parent level; returns false at the mount. */
static bool move_up(struct cgroup_level *l)
{
	if (!l->n_path)
		return false;
	while (l->n_path && l->path[l->n_path - 1] != '/')
		l->n_path--;
	l->n_path -= l->n_path > 0;
	return true;
}

/* Calls look for the group of that controller and each of its ancestors. */
static void visit_levels(const char *root, const char *controller,
			 void (*look)(void *user, const struct cgroup_level *l), void *user)
{
	char text[PROC_TEXT_BYTES], mount[32];
	const char *line = proc_read(root, "proc/self/cgroup", text) ? text : NULL;
	struct cgroup_line g;

	snprintf(mount, sizeof(mount), "/%s", controller);
	while (line && *line) {
		struct cgroup_level l;

		line = parse_cgroup_line(line, &g);
		if (!g.path || (g.n && !has_controller(&g, controller)))
			continue;
		l = (struct cgroup_level){ root, g.n ? mount : "", !g.n, g.path, g.n_path };
		l.n_path -= l.n_path && l.path[l.n_path - 1] == '/'; /* the path of the mount is "/" */
		do
			look(user, &l);
		while (move_up(&l));
	}
}

/* ---- waits ---- */

static void add_throttled(void *user, const struct cgroup_level *l)
{
	struct cgroup *ret = user;
	char text[PROC_TEXT_BYTES];
	double v = NAN;

	if (read_level_file(l, "cpu.stat", text))
		v = l->unified ? 1e-6 * proc_value(text, "throttled_usec", NULL)
			       : 1e-9 * proc_value(text, "throttled_time", NULL);
	if (!isnan(v))
		ret->throttled_s = v + (isnan(ret->throttled_s) ? 0 : ret->throttled_s);
}

static double read_memory_limit(const struct cgroup_level *l)
{
	double v = read_level_number(l, l->unified ? "memory.max" : "memory.limit_in_bytes");

	return v > 0 && v < NO_LIMIT ? v : NAN;
}

static double read_memory_usage(const struct cgroup_level *l)
{
	return read_level_number(l, l->unified ? "memory.current" : "memory.usage_in_bytes");
}

static void visit_memory_level(void *user, const struct cgroup_level *l)
{
	struct cgroup *ret = user;
	char text[PROC_TEXT_BYTES];

	if (isnan(ret->memory_wait_s) && l->unified && read_level_file(l, "memory.pressure", text))
		ret->memory_wait_s = 1e-6 * proc_value(text, "some", "total=");
	if (isnan(ret->memory_bytes) && !isnan(read_memory_limit(l)))
		ret->memory_bytes = read_memory_usage(l);
}

void cgroup_read(struct cgroup *ret, const char *root)
{
	*ret = (struct cgroup){ NAN, NAN, NAN };
	visit_levels(root, "cpu", add_throttled, ret);
	visit_levels(root, "memory", visit_memory_level, ret);
}

/* ---- limits ---- */

/* Version 2: "<quota> <period>" in one file; version 1: one file for each, quota -1 without a limit. */
static void visit_quota_level(void *user, const struct cgroup_level *l)
{
	double quota = read_level_number(l, l->unified ? "cpu.max" : "cpu.cfs_quota_us"), period = NAN, cores;
	char text[PROC_TEXT_BYTES];
	int *least = user;

	if (!l->unified)
		period = read_level_number(l, "cpu.cfs_period_us");
	else if (read_level_file(l, "cpu.max", text) && strchr(text, ' '))
		period = strtod(strchr(text, ' '), NULL);
	cores = quota > 0 && period > 0 ? ceil(quota / period) : CGROUP_NO_QUOTA;
	*least = cores < *least ? (int)cores : *least;
}

int cgroup_cores(const char *root)
{
	int least = CGROUP_NO_QUOTA;

	visit_levels(root, "cpu", visit_quota_level, &least);
	return least;
}

static void visit_memory_space(void *user, const struct cgroup_level *l)
{
	double left = read_memory_limit(l) - read_memory_usage(l), reclaimable = 0, *least = user;
	char text[PROC_TEXT_BYTES];

	if (isnan(left))
		return;
	if (read_level_file(l, "memory.stat", text))
		reclaimable = proc_value(text, l->unified ? "inactive_file" : "total_inactive_file", NULL);
	left += reclaimable > 0 ? reclaimable : 0;
	*least = fmin(*least, left);
}

int64_t cgroup_room_bytes(const char *root)
{
	double least = INFINITY;

	visit_levels(root, "memory", visit_memory_space, &least);
	return isinf(least) ? INT64_MAX : least > 1 ? (int64_t)least : 1;
}
