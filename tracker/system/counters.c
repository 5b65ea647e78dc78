/* counters.c: one function for each of the kernel's files. */
#include "tracker/system/counters.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/system/cgroup.h"
#include "tracker/system/proc.h"

#define SECTOR_BYTES 512 /* of diskstats, independent of the disk's sectors */
#define PACKAGES 64      /* processor packages whose energy is read */

/* "cpu user nice system idle iowait irq softirq steal guest guest_nice": user includes the guests' time. */
static void read_core_times(struct counters *c, const char *root)
{
	double v[8] = { 0 }, tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	char text[PROC_TEXT_BYTES], *at = text;

	if (!proc_read(root, "proc/stat", text) || strncmp(text, "cpu ", 4))
		return;
	at += 4;
	for (int i = 0; i < 8; i++)
		v[i] = strtod(at, &at) * tick;
	c->busy_s = v[0] + v[1] + v[2] + v[5] + v[6];
	c->idle_s = v[3] + v[4];
	c->steal_s = v[7];
	c->cores = 0;
	for (at = strstr(text, "\ncpu"); at; at = strstr(at + 1, "\ncpu"))
		c->cores++;
}

/* Fields after the name, which may contain any character: field 12 is major faults, 14 and 15 are user and system
 * time. */
static void read_process_stat(struct counters *c, const char *root)
{
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	char text[PROC_TEXT_BYTES], *at;

	at = proc_read(root, "proc/self/stat", text) ? strrchr(text, ')') : NULL;
	for (int field = 3; at && field <= 15; field++) {
		at = strchr(at + 1, ' ');
		if (at && field == 12)
			c->major_faults = strtod(at, NULL);
		else if (at && field == 14)
			c->own_s = strtod(at, NULL) * tick;
		else if (at && field == 15)
			c->own_s += strtod(at, NULL) * tick;
	}
}

static void read_memory_counters(struct counters *c, const char *root)
{
	struct cgroup group;
	char text[PROC_TEXT_BYTES];

	cgroup_read(&group, root);
	c->throttled_s = group.throttled_s;
	c->memory_wait_s = group.memory_wait_s;
	c->memory_bytes = group.memory_bytes;
	if (isnan(c->memory_wait_s) && proc_read(root, "proc/pressure/memory", text))
		c->memory_wait_s = 1e-6 * proc_value(text, "some", "total=");
	if (isnan(c->memory_bytes) && proc_read(root, "proc/meminfo", text))
		c->memory_bytes =
			1024 * (proc_value(text, "MemTotal", NULL) - proc_value(text, "MemAvailable", NULL));
}

/* Only whole disks: partitions and devices built from disks would be counted twice. */
static bool is_whole_disk(const char *root, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/sys/block/%s/device", root, name);
	return !access(path, F_OK);
}

/* "major minor name reads merged sectors ms writes merged sectors …" */
static void read_disk_bytes(struct counters *c, const char *root)
{
	char text[PROC_TEXT_BYTES], name[64];
	double read, written;

	if (!proc_read(root, "proc/diskstats", text))
		return;
	c->disk_read = c->disk_written = 0;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%*d %*d %63s %*f %*f %lf %*f %*f %*f %lf", name, &read, &written) != 3 ||
		    !is_whole_disk(root, name))
			continue;
		c->disk_read += read * SECTOR_BYTES;
		c->disk_written += written * SECTOR_BYTES;
	}
}

/* "  eth0: received packets … sent …", the ninth of the numbers */
static void read_network_bytes(struct counters *c, const char *root)
{
	char text[PROC_TEXT_BYTES], name[64];
	double received, sent;

	if (!proc_read(root, "proc/self/net/dev", text))
		return;
	c->net_sent = c->net_received = 0;
	for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
		if (sscanf(line + 1, " %63[^: ]: %lf %*f %*f %*f %*f %*f %*f %*f %lf", name, &received, &sent) != 3 ||
		    !strcmp(name, "lo"))
			continue;
		c->net_received += received;
		c->net_sent += sent;
	}
}

/* Averages the clock over all cores, from cpufreq or, without it, from cpuinfo. */
static void read_clock_mhz(struct counters *c, const char *root)
{
	char text[PROC_TEXT_BYTES], path[80];
	double sum = 0, n = 0;

	for (int i = 0; i < (int)c->cores; i++) {
		double khz;

		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i);
		khz = proc_number(root, path);
		if (isnan(khz))
			break;
		sum += khz / 1000;
		n++;
	}
	if (!n && proc_read(root, "proc/cpuinfo", text))
		for (const char *at = strstr(text, "\ncpu MHz"); at; at = strstr(at + 1, "\ncpu MHz")) {
			sum += proc_value(at + 1, "cpu MHz", ": ");
			n++;
		}
	if (n)
		c->clock_mhz = sum / n;
}

static void read_package_energy(struct counters *c, const char *root)
{
	char path[80];

	for (int i = 0; i < PACKAGES; i++) {
		double uj;

		snprintf(path, sizeof(path), "sys/class/powercap/intel-rapl:%d/energy_uj", i);
		uj = proc_number(root, path);
		if (isnan(uj))
			return;
		c->energy_j = (i ? c->energy_j : 0) + 1e-6 * uj;
	}
}

void counters_read(struct counters *ret, const char *root)
{
	struct counters c = { .at_s = clock_mono_s(), .cores = NAN, .busy_s = NAN, .idle_s = NAN, .steal_s = NAN,
			      .own_s = NAN, .throttled_s = NAN, .memory_wait_s = NAN, .memory_bytes = NAN,
			      .clock_mhz = NAN, .energy_j = NAN, .major_faults = NAN, .disk_read = NAN,
			      .disk_written = NAN, .net_sent = NAN, .net_received = NAN };

	read_core_times(&c, root);
	read_process_stat(&c, root);
	read_memory_counters(&c, root);
	read_disk_bytes(&c, root);
	read_network_bytes(&c, root);
	read_clock_mhz(&c, root);
	read_package_energy(&c, root);
	*ret = c;
}
