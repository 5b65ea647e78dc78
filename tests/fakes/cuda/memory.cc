/* memory.cc: see memory.h. */
#include "tests/fakes/cuda/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "tests/fakes/cuda/bounds.h"

#define PAGE ((size_t)4096)

struct area {
	char *p;
	size_t bytes, used;
	bool device;
};

/* A checkpoint's thread reads device memory while the rank's main thread runs the device. */
static std::mutex guard; /* protects everything below */
static std::vector<struct area> areas;
static int opened;
static bool hidden; /* although it is open: a host function is running */

static bool allocated; /* anything on the device, ever */

static size_t bytes_of(const char *name, size_t usual)
{
	const char *given = getenv(name);

	return given ? strtoull(given, NULL, 10) : usual;
}

static size_t room(void)
{
	return bytes_of("DPTRAIN_FAKE_MEMORY", (size_t)8 << 30);
}

/* Memory of other processes: from the start, and from this process's first allocation on. */
static size_t taken(void)
{
	return bytes_of("DPTRAIN_FAKE_TAKEN", 0) + (allocated ? bytes_of("DPTRAIN_FAKE_TAKEN_LATER", 0) : 0);
}

static size_t used(void)
{
	size_t sum = 0;

	for (const struct area &a : areas)
		sum += a.device ? a.used : 0;
	return sum;
}

/* Between two inaccessible pages, if the sanitizer is used. */
static void *area_new(size_t bytes, bool device)
{
	const std::lock_guard<std::mutex> held(guard);
	const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
	const int access = device && !opened ? PROT_NONE : PROT_READ | PROT_WRITE;
	char *p;

	allocated |= device;
	if (!bytes || (device && used() + taken() + bytes > room()))
		return NULL;
	p = (char *)mmap(NULL, pages + 2 * PAGE, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	bounds_shut(p, pages + 2 * PAGE);
	bounds_open(p + PAGE, bytes);
	areas.push_back({ p + PAGE, pages, bytes, device });
	return p + PAGE;
}

void *memory_device_new(size_t bytes)
{
	return area_new(bytes, true);
}

void *memory_pinned_new(size_t bytes)
{
	return area_new(bytes, false);
}

static const struct area *find(const void *p)
{
	for (const struct area &a : areas)
		if ((const char *)p >= a.p && (const char *)p < a.p + a.used)
			return &a;
	return NULL;
}

bool memory_free(void *p)
{
	const std::lock_guard<std::mutex> held(guard);
	auto at = std::find_if(areas.begin(), areas.end(), [&](const struct area &a) { return a.p == p; });

	if (at == areas.end())
		return false;
	bounds_open(at->p - PAGE, at->bytes + 2 * PAGE);
	munmap(at->p - PAGE, at->bytes + 2 * PAGE);
	areas.erase(at);
	return true;
}

bool memory_is_device(const void *p)
{
	const std::lock_guard<std::mutex> held(guard);
	const struct area *a = find(p);

	return a && a->device;
}

bool memory_is_pinned(const void *p)
{
	const std::lock_guard<std::mutex> held(guard);
	const struct area *a = find(p);

	return a && !a->device;
}

void memory_room(size_t *ret_free, size_t *ret_total)
{
	const std::lock_guard<std::mutex> held(guard);

	*ret_total = room();
	*ret_free = *ret_total - used() - taken();
}

static void protect(int access)
{
	for (const struct area &a : areas)
		if (a.device)
			mprotect(a.p, a.bytes, access);
}

void memory_open(void)
{
	const std::lock_guard<std::mutex> held(guard);

	if (opened++ == 0 || hidden)
		protect(PROT_READ | PROT_WRITE);
	hidden = false;
}

void memory_shut(void)
{
	const std::lock_guard<std::mutex> held(guard);

	if (--opened == 0)
		protect(PROT_NONE);
}

void memory_hide(void)
{
	const std::lock_guard<std::mutex> held(guard);

	hidden = opened == 1; /* otherwise another thread is using it */
	if (hidden)
		protect(PROT_NONE);
}

void memory_show(void)
{
	const std::lock_guard<std::mutex> held(guard);

	if (hidden)
		protect(PROT_READ | PROT_WRITE);
	hidden = false;
}
