/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c: NVML of a fake driver: the calls that tracker/system/system_sample.c makes, for devices with the UUIDs of
 * the fake device. $DPTRAIN_FAKE_NVML is the script: the values of each look, separated by ';', the last one repeated
 * for ever: "utilisation,bytes,milliwatts,degrees,MHz,nanoseconds of throttling by power,by heat". A look starts with
 * the utilisation. $DPTRAIN_FAKE_NVML_WITHOUT: a word in the name of a call that this driver does not support. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define NOT_SUPPORTED 3
#define NOT_FOUND 6
#define FIELDS 7

enum field { UTIL, BYTES, MILLIWATTS, DEGREES, MHZ, BY_POWER, BY_HEAT };

struct device {
	int number;
};

static struct device devices[16];
static unsigned long long now[FIELDS];
static const char *at;

static void look(void)
{
	const char *script = getenv("DPTRAIN_FAKE_NVML");
	size_t n;

	if (!script)
		return;
	if (!at)
		at = script;
	for (int i = 0; i < FIELDS; i++) {
		char *end;

		now[i] = strtoull(at + (i ? 1 : 0), &end, 10);
		at = end;
	}
	n = strlen(at);
	if (n > 1)
		at++;
	else /* repeat the last look */
		at = strrchr(script, ';') ? strrchr(script, ';') + 1 : script;
}

static int offers(const char *call)
{
	const char *without = getenv("DPTRAIN_FAKE_NVML_WITHOUT");

	return without && strstr(call, without) ? NOT_SUPPORTED : SUCCESS;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **ret);
int nvmlDeviceGetUtilizationRates(struct device *d, unsigned ret[2]);
int nvmlDeviceGetMemoryInfo(struct device *d, unsigned long long ret[3]);
int nvmlDeviceGetPowerUsage(struct device *d, unsigned *ret);
int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *ret);
int nvmlDeviceGetClockInfo(struct device *d, int which, unsigned *ret);
int nvmlDeviceGetViolationStatus(struct device *d, int policy, unsigned long long ret[2]);

int nvmlInit_v2(void)
{
	return SUCCESS;
}

int nvmlShutdown(void)
{
	return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **ret)
{
	unsigned number;

	if (sscanf(uuid, "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae%2x", &number) != 1 || number >= 16)
		return NOT_FOUND;
	devices[number].number = (int)number;
	*ret = &devices[number];
	return SUCCESS;
}

/* For device 1 and above, the value plus the device's number. */
int nvmlDeviceGetUtilizationRates(struct device *d, unsigned ret[2])
{
	look();
	ret[0] = (unsigned)now[UTIL] + (unsigned)d->number;
	ret[1] = 0;
	return offers("UtilizationRates");
}

int nvmlDeviceGetMemoryInfo(struct device *d, unsigned long long ret[3])
{
	(void)d;
	ret[0] = 150ull << 30;
	ret[2] = now[BYTES];
	ret[1] = ret[0] - ret[2];
	return offers("MemoryInfo");
}

int nvmlDeviceGetPowerUsage(struct device *d, unsigned *ret)
{
	(void)d;
	*ret = (unsigned)now[MILLIWATTS];
	return offers("PowerUsage");
}

int nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *ret)
{
	(void)d;
	*ret = (unsigned)now[DEGREES];
	return sensor ? NOT_SUPPORTED : offers("Temperature");
}

int nvmlDeviceGetClockInfo(struct device *d, int which, unsigned *ret)
{
	(void)d;
	*ret = (unsigned)now[MHZ];
	return which == 1 ? offers("ClockInfo") : NOT_SUPPORTED;
}

int nvmlDeviceGetViolationStatus(struct device *d, int policy, unsigned long long ret[2])
{
	(void)d;
	ret[0] = 0;
	ret[1] = policy == 0 ? now[BY_POWER] : now[BY_HEAT];
	return policy > 1 ? NOT_SUPPORTED : offers("ViolationStatus");
}
