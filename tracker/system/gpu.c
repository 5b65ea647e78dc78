/* gpu.c: calls NVML. Its header is not a build dependency, so the few calls are declared here from its documentation.
 * Their binary interface has not changed since the _v2 names exist. */
#include "tracker/system/gpu.h"

#include <math.h>
#include <stdlib.h>

#include "tracker/base/library.h"

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
