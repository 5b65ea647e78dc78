/* SPDX-License-Identifier: Apache-2.0 */
/* system_test.c: readers of /proc, /sys and control groups on synthetic file trees, for both versions of control
 * groups; and this machine under a known load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/system/cgroup.h"
#include "tracker/system/system_sample.h"

static char root[] = "/tmp/dptrack-system-XXXXXX";

static void put(const char *path, const char *text)
{
	char whole[400];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(whole, 0700);
		*at = '/';
	}
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int make_root(void **state)
{
	(void)state;
	return mkdtemp(root) ? 0 : -1;
}

static int drop_root(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void values(void **state)
{
	static const char text[] = "some avg10=0.00 avg60=1.50 total=1234\nfull avg10=0.00 total=99\n"
				   "MemTotal:  64 kB\nx 1\n";

	(void)state;
	assert_true(proc_value(text, "some", "total=") == 1234);
	assert_true(proc_value(text, "full", "total=") == 99);
	assert_true(proc_value(text, "MemTotal", NULL) == 64);
	assert_true(proc_value(text, "x", NULL) == 1);
	assert_true(isnan(proc_value(text, "x", "total=")));
	assert_true(isnan(proc_value(text, "Mem", NULL)));
	assert_true(isnan(proc_number(root, "proc/none")));
}

static void older_groups(void **state)
{
	struct cgroup g;

	(void)state;
	put("proc/self/cgroup", "5:devices:/\n4:memory:/box/a\n2:cpu,cpuacct:/box/b\n0::/\n");
	put("sys/fs/cgroup/cpu/box/b/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* a container's mount: no limit */
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n");
	cgroup_read(&g, root);
	assert_true(g.throttled_s == 2.5);
	assert_true(isnan(g.memory_bytes) && isnan(g.memory_wait_s));
	put("sys/fs/cgroup/memory/box/a/memory.limit_in_bytes", "5000\n");
	put("sys/fs/cgroup/memory/box/a/memory.usage_in_bytes", "4000\n");
	cgroup_read(&g, root);
	assert_true(g.memory_bytes == 4000);
}

static void unified_groups(void **state)
{
	struct cgroup g;

	(void)state;
	put("proc/self/cgroup", "0::/user/job\n");
	put("sys/fs/cgroup/user/job/cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 1500000\n");
	put("sys/fs/cgroup/user/job/memory.max", "max\n");
	put("sys/fs/cgroup/user/job/memory.current", "777\n");
	put("sys/fs/cgroup/user/job/memory.pressure", "some avg10=0.00 total=250000\nfull avg10=0.00 total=1\n");
	cgroup_read(&g, root);
	assert_true(fabs(g.throttled_s - 1.5) < 1e-12 && fabs(g.memory_wait_s - 0.25) < 1e-12);
	assert_true(isnan(g.memory_bytes));
	put("sys/fs/cgroup/user/job/memory.max", "1000\n");
	cgroup_read(&g, root);
	assert_true(g.memory_bytes == 777);
}

/* Throttling of the job's own group, or of the container's group above it. */
static void groups_above(void **state)
{
	struct cgroup g;

	(void)state;
	put("proc/self/cgroup", "0::/pod/job/rank\n");
	put("sys/fs/cgroup/pod/job/rank/cpu.stat", "throttled_usec 0\n");
	put("sys/fs/cgroup/pod/job/cpu.stat", "throttled_usec 3000000\n");
	put("sys/fs/cgroup/pod/job/rank/memory.max", "max\n");
	put("sys/fs/cgroup/pod/job/memory.max", "2000\n");
	put("sys/fs/cgroup/pod/job/memory.current", "1500\n");
	cgroup_read(&g, root);
	assert_true(g.throttled_s == 3 && g.memory_bytes == 1500);
	put("sys/fs/cgroup/pod/job/rank/cpu.stat", "throttled_usec 500000\n"); /* now its own group throttles it */
	cgroup_read(&g, root);
	assert_true(g.throttled_s == 3.5);
}

/* Quotas of the group and of its ancestors: files as the kernel shows them. */
static void quotas(void **state)
{
	static const struct {
		const char *groups, *file[2], *text[2];
		int cores;
	} cases[] = {
		{ "0::/q1\n", { "q1/cpu.max" }, { "max 100000\n" }, CGROUP_NO_QUOTA },
		{ "0::/q2\n", { "q2/cpu.max" }, { "150000 100000\n" }, 2 },
		{ "0::/q3.slice/job\n", { "q3.slice/job/cpu.max" }, { "50000 100000\n" }, 1 },
		{ "0::/q4.slice/job\n", { "q4.slice/job/cpu.max", "q4.slice/cpu.max" },
		  { "max 100000\n", "300000 100000\n" }, 3 },
		{ "5:memory:/m\n4:cpu,cpuacct:/q5/x\n", { "cpu/q5/cpu.cfs_quota_us", "cpu/q5/cpu.cfs_period_us" },
		  { "400000\n", "100000\n" }, 4 },
		{ "4:cpu,cpuacct:/q6\n", { "cpu/q6/cpu.cfs_quota_us", "cpu/q6/cpu.cfs_period_us" },
		  { "-1\n", "100000\n" }, CGROUP_NO_QUOTA },
		{ "nonsense\n", { "q7/cpu.max" }, { "100000 100000\n" }, CGROUP_NO_QUOTA },
		{ "0::/\n", { "cpu.max" }, { "100000 100000\n" }, 1 }, /* the mount: last, above all others */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[100];

		put("proc/self/cgroup", cases[i].groups);
		for (int k = 0; k < 2 && cases[i].file[k]; k++) {
			snprintf(path, sizeof(path), "sys/fs/cgroup/%s", cases[i].file[k]);
			put(path, cases[i].text[k]);
		}
		assert_int_equal(cgroup_cores(root), cases[i].cores);
	}
}

/* The tightest limit applies, minus what is used; reclaimable memory counts as free. */
static void room(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/r/job\n");
	put("sys/fs/cgroup/r/job/memory.max", "max\n");
	put("sys/fs/cgroup/r/job/memory.current", "10\n");
	assert_true(cgroup_room_bytes(root) == INT64_MAX);
	put("sys/fs/cgroup/r/memory.max", "10000\n");
	put("sys/fs/cgroup/r/memory.current", "9000\n");
	put("sys/fs/cgroup/r/memory.stat", "anon 5\ninactive_file 500\n");
	assert_true(cgroup_room_bytes(root) == 1500);
	put("sys/fs/cgroup/r/job/memory.max", "10\n");
	assert_true(cgroup_room_bytes(root) == 1); /* nothing remains */
	put("proc/self/cgroup", "4:memory:/old\n");
	put("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "8000\n");
	put("sys/fs/cgroup/memory/old/memory.usage_in_bytes", "3000\n");
	put("sys/fs/cgroup/memory/old/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n");
	assert_true(cgroup_room_bytes(root) == 5200);
}

static void machine(void **state)
{
	const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	struct counters c;

	(void)state;
	put("proc/stat", "cpu  100 1 20 300 4 5 6 70 8 9\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n");
	put("proc/self/stat", "7 (a (b) c) R 1 7 7 0 -1 0 11 12 13 14 500 60 0 0 20 0\n");
	put("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:   400 kB\n");
	put("proc/pressure/memory", "some avg10=0.00 total=3000000\n");
	put("proc/diskstats", "   8 0 sda 10 0 100 5 20 0 200 7 0 0 0\n   8 1 sda1 10 0 100 5 20 0 200 7 0 0 0\n");
	put("sys/block/sda/device/model", "");
	put("proc/self/net/dev", "Inter-| Receive\n face |bytes\n    lo: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
				 "  eth0: 1000 9 0 0 0 0 0 0 2000 9 0 0 0 0 0 0\n");
	put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
	put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n");
	put("sys/class/powercap/intel-rapl:0/energy_uj", "4000000\n");
	put("proc/self/cgroup", "0::/none\n");
	counters_read(&c, root);
	assert_true(c.cores == 2 && fabs(c.busy_s - 132 * tick) < 1e-9 && fabs(c.idle_s - 304 * tick) < 1e-9);
	assert_true(fabs(c.steal_s - 70 * tick) < 1e-9 && fabs(c.own_s - 560 * tick) < 1e-9);
	assert_true(c.major_faults == 13 && c.memory_bytes == 600 * 1024 && c.memory_wait_s == 3);
	assert_true(c.disk_read == 100 * 512 && c.disk_written == 200 * 512); /* the disk includes the partition */
	assert_true(c.net_received == 1000 && c.net_sent == 2000);
	assert_true(c.clock_mhz == 2500 && c.energy_j == 4);
}

/* A root without files: nothing is known, and nothing fails. */
static void nothing(void **state)
{
	double v[SAMPLE_SERIES];
	struct system_sample s;

	(void)state;
	sample_begin(&s, "/nonexistent", NULL);
	sample_take(&s, v);
	sample_done(&s);
	for (int i = 0; i < SAMPLE_SERIES; i++)
		if (!isnan(v[i]))
			fail_msg("%s is %g", sample_key((enum sample_series)i), v[i]);
}

static void waiting_threads(void **state)
{
	struct threads t = { .n = 0 };
	struct threads_use use;

	(void)state;
	put("proc/self/comm", "dptrain\n");
	for (int i = 1; i <= 3; i++) {
		static const char *const names[] = { "dptrain\n", "dptrain\n", "dptrain-load\n" };
		char path[60];

		snprintf(path, sizeof(path), "proc/self/task/%d/comm", i);
		put(path, names[i - 1]);
		snprintf(path, sizeof(path), "proc/self/task/%d/schedstat", i);
		put(path, "1000000000 500000000 9\n");
	}
	threads_read(&t, root, 1, &use);
	put("proc/self/task/1/schedstat", "1900000000 600000000 9\n");
	put("proc/self/task/2/schedstat", "1010000000 900000000 9\n");
	put("proc/self/task/3/schedstat", "9000000000 9000000000 9\n"); /* a loader's: not a compute thread */
	threads_read(&t, root, 1, &use);
	assert_true(fabs(use.wait_s - 0.4) < 1e-9);
	assert_true(use.busy == 1 && fabs(use.on_core_s - 0.9) < 1e-9);
	threads_done(&t);
}

/* The time that a quota takes from threads on two cores in a second. */
static void throttled_threads(void **state)
{
	static const struct {
		struct threads_use use;
		double throttled_s, want_s;
	} cases[] = {
		{ { .busy = 1, .on_core_s = 0.3 }, 0.7, 0.7 },
		{ { .busy = 1, .on_core_s = 0.3 }, 0.8, 0.7 }, /* a loader is throttled on another core */
		{ { .busy = 2, .on_core_s = 0.6 }, 1.4, 0.7 },	/* both are throttled */
		{ { .busy = 2, .on_core_s = 0.6 }, 0.7, 0.7 },	/* each waits while the other is throttled */
		{ { .busy = 2, .on_core_s = 1.3 }, 0.7, 0.35 }, /* each is throttled for half of it, both at once */
		{ { .busy = 2, .on_core_s = 0.6 }, 0.1, 0.1 },	/* they wait for something else */
		{ { .busy = 8, .on_core_s = 1.9 }, 0.1, 0.05 }, /* they wait for cores */
		{ { .busy = 0 }, 0.2, 0.2 },			/* a loader's threads are throttled */
		{ { .busy = 2, .on_core_s = 1.9 }, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double got = sample_throttled(&cases[i].use, cases[i].throttled_s, 2, 1);

		if (fabs(got - cases[i].want_s) > 1e-9)
			fail_msg("case %zu: %g s, not %g", i, got, cases[i].want_s);
	}
}

/* 0.3 s of one core, used by this process. */
static void known_load(void **state)
{
	double v[SAMPLE_SERIES], until, start_s = clock_mono_s(), spent_s;
	struct system_sample s;

	(void)state;
	sample_begin(&s, "", "GPU-of-nobody");
	for (until = clock_thread_s() + 0.3; clock_thread_s() < until;)
		;
	sample_loop(&s);
	sample_take(&s, v);
	sample_done(&s);
	if (isnan(v[SAMPLE_cpu_process_percent]))
		skip();
	spent_s = v[SAMPLE_cpu_process_percent] / 100 * s.last.cores * (clock_mono_s() - start_s);
	assert_true(spent_s > 0.25 && spent_s < 0.4);
	assert_true(v[SAMPLE_cpu_percent] > 0 && v[SAMPLE_cpu_percent] <= 100);
	assert_true(v[SAMPLE_loop_us] > 1 && v[SAMPLE_loop_us] < 10000);
	assert_true(v[SAMPLE_memory_bytes] > 1e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),	   cmocka_unit_test(older_groups), cmocka_unit_test(unified_groups),
		cmocka_unit_test(groups_above),	   cmocka_unit_test(quotas),	   cmocka_unit_test(room),
		cmocka_unit_test(machine),	   cmocka_unit_test(nothing),	   cmocka_unit_test(waiting_threads),
		cmocka_unit_test(throttled_threads),
		cmocka_unit_test(known_load),
	};

	return cmocka_run_group_tests(tests, make_root, drop_root);
}
