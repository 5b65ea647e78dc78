/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c: reads /proc, uname and .git; runs no programs. */
#include "trainer/launch/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/base/text.h"
#include "tracker/mem/mem.h"
#include "tracker/system/cgroup.h"

#define STATUS_BYTES 8192 /* the kernel writes about a fifth of that */

void machine_host(char *text, size_t n)
{
	if (gethostname(text, n))
		text[0] = '\0';
	text[n - 1] = '\0';
}

/* Finds the first line of a file that starts with key; writes the value after ": ". */
static int read_keyed_line(const char *path, const char *key, char *text, size_t n)
{
	char line[1024];
	FILE *f = fopen(path, "re");
	int found = 0;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) || !value)
			continue;
		value += 1 + strspn(value + 1, " \t");
		value[strcspn(value, "\n")] = '\0';
		snprintf(text, n, "%s", value);
		found = 1;
	}
	if (f)
		fclose(f);
	return found;
}

void machine_node(char *text, size_t n)
{
	char boot[64] = "", net[64] = "", host[64];
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	machine_host(host, sizeof(host));
	if (f && !fgets(boot, sizeof(boot), f))
		boot[0] = '\0';
	if (f)
		fclose(f);
	boot[strcspn(boot, "\n")] = '\0';
	if (readlink("/proc/self/ns/net", net, sizeof(net) - 1) < 0)
		net[0] = '\0';
	snprintf(text, n, "%s %s %s", host, boot, net);
}

void machine_cpu(char *text, size_t n)
{
	char model[200];

	if (!read_keyed_line("/proc/cpuinfo", "model name", model, sizeof(model)))
		snprintf(model, sizeof(model), "unknown");
	snprintf(text, n, "%s, %ld cores", model, sysconf(_SC_NPROCESSORS_ONLN));
}

void machine_system(char *text, size_t n)
{
	struct utsname u;

	text[0] = '\0';
	if (!uname(&u))
		snprintf(text, n, "%s %s %s", u.sysname, u.release, u.machine);
}

/* Reads a text of the kernel on this process. Allocates nothing, since every epoch calls it. */
static void read_proc_text(const char *path, char text[STATUS_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : file_read(fd, 0, text, STATUS_BYTES - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
}

/* Returns the bytes of the line "key: N kB"; 0: no such line. */
static int64_t status_bytes(const char *status, const char *key)
{
	char begin[32];
	const char *line;

	snprintf(begin, sizeof(begin), "\n%s:", key);
	line = strstr(status, begin);
	return line ? strtoll(line + strlen(begin), NULL, 10) * 1024 : 0;
}

int64_t machine_peak_bytes(void)
{
	char status[STATUS_BYTES];
	struct rusage use;
	int64_t peak;

	read_proc_text("/proc/self/status", status);
	peak = status_bytes(status, "VmHWM");
	if (peak)
		return peak;
	return getrusage(RUSAGE_SELF, &use) ? 0 : (int64_t)use.ru_maxrss * 1024;
}

int64_t machine_held_bytes(void)
{
	char status[STATUS_BYTES], shares[STATUS_BYTES];

	read_proc_text("/proc/self/status", status);
	read_proc_text("/proc/self/smaps_rollup", shares);
	return status_bytes(status, "RssAnon") + status_bytes(shares, "Pss_Shmem") + status_bytes(status, "VmSwap");
}

static int read_first_line(const char *path, char *text, size_t n)
{
	FILE *f = fopen(path, "re");
	int ok = f && fgets(text, (int)n, f) != NULL;

	if (f)
		fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = '\0';
	return ok;
}

/* Finds a ref without its own file in packed-refs: "<commit> <ref>". */
static int find_packed_ref(const char *git, const char *ref, char *text, size_t n)
{
	char path[PATH_MAX + 600], line[512];
	FILE *f;
	int found = 0;

	snprintf(path, sizeof(path), "%s/packed-refs", git);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		found = strlen(line) > 41 && !strcmp(line + 41, ref);
		if (found)
			snprintf(text, n, "%.40s", line);
	}
	if (f)
		fclose(f);
	return found;
}

/* Writes the commit of HEAD; worktrees share refs with the folder that "commondir" names. */
static void resolve_head(const char *git, char *text, size_t n)
{
	char path[PATH_MAX + 600], head[300], common[PATH_MAX] = ".", base[PATH_MAX + 300];
	char file[PATH_MAX + 700];

	snprintf(path, sizeof(path), "%s/HEAD", git);
	if (!read_first_line(path, head, sizeof(head)))
		return;
	if (strncmp(head, "ref: ", 5)) {
		snprintf(text, n, "%s", head);
		return;
	}
	snprintf(path, sizeof(path), "%s/commondir", git);
	if (!read_first_line(path, common, sizeof(common)) || common[0] != '/')
		snprintf(base, sizeof(base), "%s/%.200s", git, common);
	else
		snprintf(base, sizeof(base), "%s", common);
	snprintf(file, sizeof(file), "%s/%s", base, head + 5);
	if (!read_first_line(file, text, n) && !find_packed_ref(base, head + 5, text, n))
		text[0] = '\0';
}

void machine_commit(char *text, size_t n)
{
	char folder[PATH_MAX], git[PATH_MAX + 16], link[PATH_MAX];

	text[0] = '\0';
	if (!getcwd(folder, sizeof(folder)))
		return;
	for (;;) {
		snprintf(git, sizeof(git), "%s/.git", folder);
		if (!access(git, F_OK))
			break;
		if (!strrchr(folder, '/') || !folder[1])
			return;
		*strrchr(folder, '/') = '\0';
		if (!folder[0])
			return;
	}
	if (read_keyed_line(git, "gitdir", link, sizeof(link))) /* a worktree: .git is a file */
		snprintf(git, sizeof(git), "%s", link);
	resolve_head(git, text, n);
}

static int is_shell_safe(const char *s)
{
	return *s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+-%@")];
}

void machine_command(int argc, char *const argv[], char *text, size_t n)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < argc && used < n; i++) {
		char *word = mem_strdup(argv[i]);
		int k;

		text_hide_credentials(word);
		k = snprintf(text + used, n - used, is_shell_safe(word) ? "%s%s" : "%s'%s'", i ? " " : "", word);
		used += k < 0 ? 0 : (size_t)k;
		free(word);
	}
}

int64_t machine_available_bytes(void)
{
	int64_t group = cgroup_room_bytes("");
	char value[64];

	if (!read_keyed_line("/proc/meminfo", "MemAvailable", value, sizeof(value)))
		return group == INT64_MAX ? 0 : group;
	return strtoll(value, NULL, 10) * 1024 < group ? strtoll(value, NULL, 10) * 1024 : group;
}

int64_t machine_mappable_bytes(void)
{
	struct rlimit limit;
	long long pages = 0;
	FILE *f;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	f = fopen("/proc/self/statm", "re");
	if (f && fscanf(f, "%lld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	pages *= sysconf(_SC_PAGESIZE);
	return (int64_t)limit.rlim_cur > pages ? (int64_t)limit.rlim_cur - pages : 0;
}
