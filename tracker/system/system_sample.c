/* system_sample.c: computes the series from differences of counters. */
#include "tracker/system/system_sample.h"

#include <math.h>
#include <stdint.h>


#define LOOP_TURNS 20000 /* about 30 us at four cycles a turn on a 2.6 GHz core */
#define LOOP_TRIES 3     /* the shortest is used: a thread that lost its core measures no clock */

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
	s->slow = clock_hook();
	gpu_read(s->gpu, &now);
	s->gpu_throttled_s = now.throttled_s;
	counters_read(&s->first, root);
	s->last = s->first;
	threads_read(&s->threads, root, 1, &none);
}

/* Dependent multiplications: a fixed number of cycles, independent of the compiler and the caches. */
void sample_loop(struct system_sample *s)
{
	const int turns = clock_mono_s() < s->slow.from_s ? LOOP_TURNS : (int)(s->slow.factor * LOOP_TURNS);

	for (int i = 0; i < LOOP_TRIES; i++) {
		double start = clock_mono_s(), took;
		volatile uint64_t result;
		uint64_t x = 1;

		for (int k = 0; k < turns; k++) {
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
