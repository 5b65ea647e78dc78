/* SPDX-License-Identifier: Apache-2.0 */
/* system_sample.c: reads the counters of the kernel and of NVML, and computes the series from their differences. */
#include "tracker/system/system_sample.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/library.h"
#include "tracker/system/cgroup.h"

/* ---- one function for each of the kernel's files ---- */

#define SECTOR_BYTES 512 /* of diskstats, independent of the disk's sectors */
#define PACKAGES 64	 /* processor packages whose energy is read */

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
		c->memory_bytes = 1024 * (proc_value(text, "MemTotal", NULL) - proc_value(text, "MemAvailable", NULL));
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

/* ---- <root>/proc/self/task, thread by thread ---- */

#define BUSY_SHARE 0.05

/* "ns on a core, ns ready without one, number of time slices" */
static int read_thread_times(const char *root, const char *name, const char *id, struct threads_seen *ret)
{
	char path[PATH_MAX], text[PROC_TEXT_BYTES], *end;

	snprintf(path, sizeof(path), "proc/self/task/%s/comm", id);
	if (!proc_read(root, path, text) || strcmp(text, name))
		return 0;
	snprintf(path, sizeof(path), "proc/self/task/%s/schedstat", id);
	if (!proc_read(root, path, text))
		return 0;
	ret->id = strtol(id, NULL, 10);
	ret->on_core_s = 1e-9 * strtod(text, &end);
	ret->wait_s = 1e-9 * strtod(end, NULL);
	return 1;
}

static const struct threads_seen *find_thread(const struct threads *t, long id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->seen[i].id == id)
			return &t->seen[i];
	return NULL;
}

static void add_thread_use(const struct threads *before, const struct threads_seen *now, double seconds,
			   struct threads_use *use)
{
	const struct threads_seen *old = find_thread(before, now->id);
	const double waited = now->wait_s - (old ? old->wait_s : 0);
	const double on_core = now->on_core_s - (old ? old->on_core_s : 0);

	use->wait_s = fmax(use->wait_s, waited); /* fmax of NaN and a number is the number */
	if (on_core > BUSY_SHARE * seconds) {
		use->busy++;
		use->on_core_s += on_core;
	}
}

/* Rewinds the folder; NULL: cannot be opened. */
static DIR *open_task_folder(struct threads *t, const char *root)
{
	char path[PATH_MAX];

	if (t->folder) {
		rewinddir(t->folder);
		return t->folder;
	}
	snprintf(path, sizeof(path), "%s/proc/self/task", root);
	t->folder = opendir(path);
	return t->folder;
}

void threads_read(struct threads *t, const char *root, double seconds, struct threads_use *ret)
{
	struct threads_use use = { .wait_s = NAN };
	struct threads now = { .folder = open_task_folder(t, root) };
	char name[PROC_TEXT_BYTES];
	const struct dirent *e;

	if (!proc_read(root, "proc/self/comm", name))
		name[0] = '\0';
	while (now.folder && now.n < THREADS_MAX && (e = readdir(now.folder))) {
		if (e->d_name[0] == '.' || !read_thread_times(root, name, e->d_name, &now.seen[now.n]))
			continue;
		add_thread_use(t, &now.seen[now.n++], seconds, &use);
	}
	*t = now;
	*ret = use;
}

void threads_done(struct threads *t)
{
	if (t->folder)
		closedir(t->folder);
}

/* ---- NVML ---- */

/* Calls NVML. Its header is not a build dependency, so the few calls are declared here from its documentation.
 * Their binary interface has not changed since the _v2 names exist. */

struct nvmlDevice_st;

struct nvml_rates { /* nvmlUtilization_t */
	unsigned gpu, memory;
};

struct nvml_memory { /* nvmlMemory_t */
	unsigned long long total, room, used;
};

struct nvml_violation { /* nvmlViolationTime_t: microseconds, nanoseconds */
	unsigned long long at, violation_ns;
};

enum { NVML_TEMPERATURE_GPU = 0, NVML_CLOCK_SM = 1, NVML_POLICY_POWER = 0, NVML_POLICY_THERMAL = 1 };

struct nvml_calls { /* each returns 0 on success */
	int (*init)(void);
	int (*shutdown)(void);
	int (*by_uuid)(const char *uuid, struct nvmlDevice_st **ret);
	int (*rates)(struct nvmlDevice_st *d, struct nvml_rates *ret);
	int (*memory)(struct nvmlDevice_st *d, struct nvml_memory *ret);
	int (*power)(struct nvmlDevice_st *d, unsigned *ret_mw);
	int (*temperature)(struct nvmlDevice_st *d, int sensor, unsigned *ret);
	int (*clock)(struct nvmlDevice_st *d, int which, unsigned *ret_mhz);
	int (*violation)(struct nvmlDevice_st *d, int policy, struct nvml_violation *ret);
};

struct gpu {
	struct nvml_calls nvml;
	struct nvmlDevice_st *device;
};

/* Without NVML nothing is read. */
static int load_nvml(struct nvml_calls *n)
{
	const struct library nvml = { "libnvidia-ml.so.1", "GPU statistics need NVML" };
	const struct library_function calls[] = {
		{ "nvmlInit_v2", &n->init },
		{ "nvmlShutdown", &n->shutdown },
		{ "nvmlDeviceGetHandleByUUID", &n->by_uuid },
		{ "nvmlDeviceGetUtilizationRates", &n->rates },
		{ "nvmlDeviceGetMemoryInfo", &n->memory },
		{ "nvmlDeviceGetPowerUsage", &n->power },
		{ "nvmlDeviceGetTemperature", &n->temperature },
		{ "nvmlDeviceGetClockInfo", &n->clock },
		{ "nvmlDeviceGetViolationStatus", &n->violation },
	};

	return library_load(&nvml, calls, sizeof(calls) / sizeof(calls[0]), NULL);
}

struct gpu *gpu_open(const char *uuid)
{
	struct gpu *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	if (load_nvml(&g->nvml) || g->nvml.init()) {
		free(g);
		return NULL;
	}
	if (g->nvml.by_uuid(uuid, &g->device)) {
		gpu_close(g);
		return NULL;
	}
	return g;
}

void gpu_close(struct gpu *g)
{
	if (!g)
		return;
	g->nvml.shutdown();
	free(g);
}

static double read_throttled_s(struct gpu *g, int policy)
{
	struct nvml_violation v;

	return g->nvml.violation(g->device, policy, &v) ? NAN : 1e-9 * (double)v.violation_ns;
}

void gpu_read(struct gpu *g, struct gpu_stats *ret)
{
	struct nvml_memory memory;
	struct nvml_rates rates;
	unsigned n;

	*ret = (struct gpu_stats){ NAN, NAN, NAN, NAN, NAN, NAN };
	if (!g)
		return;
	if (!g->nvml.rates(g->device, &rates))
		ret->util_percent = rates.gpu;
	if (!g->nvml.memory(g->device, &memory))
		ret->memory_bytes = (double)memory.used;
	if (!g->nvml.power(g->device, &n))
		ret->power_watts = 1e-3 * n;
	if (!g->nvml.temperature(g->device, NVML_TEMPERATURE_GPU, &n))
		ret->temperature_c = n;
	if (!g->nvml.clock(g->device, NVML_CLOCK_SM, &n))
		ret->sm_mhz = n;
	ret->throttled_s = read_throttled_s(g, NVML_POLICY_POWER) + read_throttled_s(g, NVML_POLICY_THERMAL);
}

/* ---- the sample ---- */

#define LOOP_TURNS 20000 /* about 30 us at four cycles a turn on a 2.6 GHz core */
#define LOOP_TRIES 3	 /* the shortest is used: a thread that lost its core measures no clock */

const char *sample_key(enum sample_series s)
{
	static const char *const keys[SAMPLE_SERIES] = {
#define SYSTEM(name, kind, help) "system/" #name,
#include "schema/event/system.def"
#undef SYSTEM
	};

	return keys[s];
}

void sample_begin(struct system_sample *s, const char *root, const char *gpu)
{
	struct threads_use none;
	struct gpu_stats now;

	*s = (struct system_sample){ .root = root, .loop_s = INFINITY, .gpu = gpu ? gpu_open(gpu) : NULL };
	gpu_read(s->gpu, &now);
	s->gpu_throttled_s = now.throttled_s;
	counters_read(&s->first, root);
	s->last = s->first;
	threads_read(&s->threads, root, 1, &none);
}

/* Dependent multiplications: a fixed number of cycles, independent of the compiler and the caches. */
void sample_loop(struct system_sample *s)
{
	for (int i = 0; i < LOOP_TRIES; i++) {
		double start = clock_mono_s(), took;
		volatile uint64_t result;
		uint64_t x = 1;

		for (int k = 0; k < LOOP_TURNS; k++) {
			x *= 6364136223846793005u;
			__asm__ volatile("" : "+r"(x));
		}
		result = x;
		(void)result;
		took = clock_mono_s() - start;
		s->loop_s = took < s->loop_s ? took : s->loop_s;
	}
}

void sample_done(struct system_sample *s)
{
	threads_done(&s->threads);
	gpu_close(s->gpu);
}

static double clamp_percent(double part, double whole)
{
	return whole > 0 ? 100 * fmin(1, fmax(0, part / whole)) : NAN;
}

double sample_throttled(const struct threads_use *use, double throttled_s, double cores, double seconds)
{
	const double together = fmax(1, fmin(use->busy, cores));

	return use->busy > 0 ? fmin(throttled_s, seconds - use->on_core_s / together) : throttled_s;
}

static void sample_gpu(struct system_sample *s, double seconds, double ret[SAMPLE_SERIES])
{
	struct gpu_stats v;

	gpu_read(s->gpu, &v);
	ret[SAMPLE_gpu_util_percent] = v.util_percent;
	ret[SAMPLE_gpu_memory_bytes] = v.memory_bytes;
	ret[SAMPLE_gpu_power_watts] = v.power_watts;
	ret[SAMPLE_gpu_temperature_c] = v.temperature_c;
	ret[SAMPLE_gpu_sm_mhz] = v.sm_mhz;
	ret[SAMPLE_gpu_throttle_percent] =
		isnan(v.throttled_s) ? NAN : clamp_percent(v.throttled_s - s->gpu_throttled_s, seconds);
	s->gpu_throttled_s = v.throttled_s;
}

void sample_take(struct system_sample *s, double ret[SAMPLE_SERIES])
{
	const struct counters *a = &s->last, *zero = &s->first;
	struct threads_use use;
	struct counters b;
	double all, seconds, throttled_s;

	counters_read(&b, s->root);
	seconds = b.at_s - a->at_s;
	throttled_s = b.throttled_s - a->throttled_s;
	threads_read(&s->threads, s->root, seconds, &use);
	all = b.busy_s + b.idle_s + b.steal_s - a->busy_s - a->idle_s - a->steal_s;
	ret[SAMPLE_cpu_percent] = clamp_percent(b.busy_s - a->busy_s, all);
	ret[SAMPLE_cpu_process_percent] = clamp_percent(b.own_s - a->own_s, all);
	ret[SAMPLE_cpu_wait_percent] = isnan(use.wait_s) ? NAN : clamp_percent(use.wait_s, seconds);
	ret[SAMPLE_cpu_steal_percent] = clamp_percent(b.steal_s - a->steal_s, all);
	ret[SAMPLE_cpu_throttled_percent] =
		isnan(throttled_s) ? NAN
				   : clamp_percent(sample_throttled(&use, throttled_s, b.cores, seconds), seconds);
	ret[SAMPLE_loop_us] = isinf(s->loop_s) ? NAN : 1e6 * s->loop_s;
	ret[SAMPLE_clock_mhz] = b.clock_mhz;
	ret[SAMPLE_power_watts] = (b.energy_j - a->energy_j) / seconds;
	if (ret[SAMPLE_power_watts] < 0) /* the counter restarted */
		ret[SAMPLE_power_watts] = NAN;
	ret[SAMPLE_memory_bytes] = b.memory_bytes;
	ret[SAMPLE_memory_wait_percent] =
		isnan(b.memory_wait_s) ? NAN : clamp_percent(b.memory_wait_s - a->memory_wait_s, seconds);
	ret[SAMPLE_major_faults] = b.major_faults - zero->major_faults;
	ret[SAMPLE_disk_read_bytes] = b.disk_read - zero->disk_read;
	ret[SAMPLE_disk_write_bytes] = b.disk_written - zero->disk_written;
	ret[SAMPLE_net_sent_bytes] = b.net_sent - zero->net_sent;
	ret[SAMPLE_net_received_bytes] = b.net_received - zero->net_received;
	sample_gpu(s, seconds, ret);
	s->last = b;
	s->loop_s = INFINITY;
}
