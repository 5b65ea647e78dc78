/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_pick.c: chooses the device of a rank. Every rank of a machine checks the whole list, so all of them report the
 * same error. */
#include "trainer/backends/cuda/cuda_module.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 256
#define UUID_BYTES sizeof(((struct backend_device *)0)->uuid)

struct device_list {
	int device[RANKS_MAX]; /* device by position in the list */
	int n, count;	       /* count: devices of this machine */
};

int pick_capability(int device)
{
	int major = 0, minor = 0;

	if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
	    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess)
		return 0;
	return 10 * major + minor;
}

/* Prints the UUID like nvidia-smi -L. */
static void print_uuid(const struct cudaDeviceProp *p, char text[UUID_BYTES])
{
	const unsigned char *b = (const unsigned char *)p->uuid.bytes;
	size_t used = (size_t)snprintf(text, UUID_BYTES, "GPU");

	for (int i = 0; i < 16; i++)
		used += (size_t)snprintf(text + used, UUID_BYTES - used, "%s%02x",
					 i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

static int read_attribute(enum cudaDeviceAttr which, int device)
{
	int v = 0;

	return cudaDeviceGetAttribute(&v, which, device) == cudaSuccess ? v : 0;
}

/* Prints the properties in the format of cuDNN's CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. */
static void print_properties(const struct cudaDeviceProp *p, int device, char *text, size_t n)
{
	int driver = 0;

	cudaDriverGetVersion(&driver);
	snprintf(text, n,
		 "{\"deviceName\": \"%.100s\", \"deviceVer\": %d, \"driverVer\": %d, \"cudaDeviceId\": %d, "
		 "\"pciDeviceId\": %d, \"isTccDriver\": %d, \"multiProcessorCount\": %d, \"warpSize\": %d, "
		 "\"totalGlobalMem\": %zu, "
		 "\"l2CacheSize\": %d, \"maxGridSize\": [%d, %d, %d], \"maxBlockSize\": [%d, %d, %d], "
		 "\"maxThreadsPerBlock\": %d, \"maxThreadsPerSM\": %d, \"maxCtasPerSM\": %d, \"regsPerBlock\": %d, "
		 "\"maxRegistersPerSM\": %d, \"maxSharedMemoryPerBlock\": %zu, \"maxSharedMemoryPerBlockOptin\": %zu, "
		 "\"reservedSharedMemoryPerBlock\": %zu, \"supportCoopLaunch\": %d, \"smClockRateKHz\": %d, "
		 "\"memClockRateKHz\": %d}",
		 p->name, 100 * p->major + 10 * p->minor, driver, device, p->pciDeviceID, p->tccDriver,
		 p->multiProcessorCount, p->warpSize, p->totalGlobalMem, p->l2CacheSize, p->maxGridSize[0],
		 p->maxGridSize[1], p->maxGridSize[2], p->maxThreadsDim[0], p->maxThreadsDim[1], p->maxThreadsDim[2],
		 p->maxThreadsPerBlock, p->maxThreadsPerMultiProcessor, p->maxBlocksPerMultiProcessor, p->regsPerBlock,
		 p->regsPerMultiprocessor, p->sharedMemPerBlock, p->sharedMemPerBlockOptin,
		 p->reservedSharedMemPerBlock, p->cooperativeLaunch, read_attribute(cudaDevAttrClockRate, device),
		 read_attribute(cudaDevAttrMemoryClockRate, device));
}

int pick_describe(int device, struct backend_device *ret, struct err *err)
{
	struct cudaDeviceProp p;
	cudaError_t rc = cudaGetDeviceProperties(&p, device);

	if (rc != cudaSuccess)
		return cuda_fail(err, rc, "reading the properties of a GPU");
	*ret = (struct backend_device){ .capability = 10 * p.major + p.minor,
					.multiprocessors = p.multiProcessorCount,
					.memory_bytes = (int64_t)p.totalGlobalMem,
					.l2_bytes = p.l2CacheSize,
					.shared_bytes = (int64_t)p.sharedMemPerBlockOptin };
	snprintf(ret->name, sizeof(ret->name), "%.63s", p.name);
	print_uuid(&p, ret->uuid);
	print_properties(&p, device, ret->properties, sizeof(ret->properties));
	return 0;
}

static int find_device_by_uuid(const struct device_list *l, const char *word, struct err *err)
{
	struct backend_device device;

	for (int d = 0; d < l->count; d++)
		if (!pick_describe(d, &device, NULL) && !strncmp(device.uuid, word, strlen(word)))
			return d;
	return err_set(err, ERR_USAGE, "--device %s: no GPU here has this UUID: see nvidia-smi -L", word);
}

static int find_listed_device(const struct device_list *l, const char *word, struct err *err)
{
	char *end = NULL;
	long v = isdigit((unsigned char)*word) ? strtol(word, &end, 10) : -1;

	if (!strncmp(word, "GPU-", 4))
		return find_device_by_uuid(l, word, err);
	if (!end || *end)
		return err_set(err, ERR_USAGE, "--device %s: expected GPU numbers, UUIDs (GPU-...) or auto", word);
	if (v >= l->count)
		return err_set(err, ERR_USAGE, "--device %ld: there %s %d GPU%s, numbered from 0", v,
			       l->count == 1 ? "is" : "are", l->count, l->count == 1 ? "" : "s");
	return (int)v;
}

static int read_device_list(struct device_list *l, const char *text, struct err *err)
{
	char word[80];

	while (l->n < RANKS_MAX) {
		const size_t bytes = strcspn(text, ",");
		int device;

		snprintf(word, sizeof(word), "%.*s", (int)bytes, text);
		device = find_listed_device(l, word, err);
		if (device < 0)
			return device;
		l->device[l->n++] = device;
		if (!text[bytes])
			break;
		text += bytes + 1;
	}
	return 0;
}

static void list_all_devices(struct device_list *l)
{
	while (l->n < l->count && l->n < RANKS_MAX) {
		l->device[l->n] = l->n;
		l->n++;
	}
}

static int check_device_count(const struct device_list *l, const struct backend_opts *o, bool all, struct err *err)
{
	if (!all && l->n > o->local_world)
		return err_set(err, ERR_USAGE, "--device %s: lists %d GPUs for %d rank%s: add --nproc-per-node %d",
			       o->device, l->n, o->local_world, o->local_world == 1 ? "" : "s", l->n);
	if (o->share || l->n >= o->local_world)
		return 0;
	return err_set(err, ERR_USAGE,
		       "backend cuda: there %s %d GPU%s for %d ranks: use --nproc-per-node %d, or --share-gpu, which "
		       "is slow but correct",
		       l->n == 1 ? "is" : "are", l->n, l->n == 1 ? "" : "s", o->local_world, l->n);
}

/* Returns true if two ranks have the same device. */
static bool shares_device(const struct device_list *l, int ranks)
{
	for (int r = 0; r < ranks; r++)
		for (int k = 0; k < r; k++)
			if (l->device[r % l->n] == l->device[k % l->n])
				return true;
	return false;
}

static void set_nccl_host(int rank)
{
	char name[32];

	snprintf(name, sizeof(name), "dptrain-rank-%d", rank);
	setenv("NCCL_HOSTID", name, 0);
}

int pick_device(const struct backend_opts *o, int *ret, struct err *err)
{
	const bool all = !o->device || !strcmp(o->device, "auto");
	const int ranks = o->local_world > 0 ? o->local_world : 1;
	struct device_list l = { .n = 0 };
	cudaError_t found = cudaGetDeviceCount(&l.count);
	int rc = found == cudaSuccess ? 0 : cuda_fail(err, found, "counting the GPUs");

	if (!rc && all)
		list_all_devices(&l);
	else if (!rc)
		rc = read_device_list(&l, o->device, err);
	if (!rc)
		rc = check_device_count(&l, o, all, err);
	if (rc)
		return rc;
	if (shares_device(&l, ranks) && !o->share)
		return err_set(err, ERR_USAGE,
			       "--device %s: lists a GPU twice: add --share-gpu, which is slow but correct", o->device);
	if (shares_device(&l, ranks))
		set_nccl_host(o->local_rank);
	*ret = l.device[o->local_rank % l.n];
	if (pick_capability(*ret) < PICK_CAPABILITY_MIN)
		return err_set(err, ERR_UNSUPPORTED,
			       "backend cuda: device %d has compute capability %d.%d: 8.0 or newer is required", *ret,
			       pick_capability(*ret) / 10, pick_capability(*ret) % 10);
	return 0;
}
