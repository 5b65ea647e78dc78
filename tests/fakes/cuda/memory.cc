/* memory.cc: see memory.h. */
#include "tests/fakes/cuda/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

struct area {
	char *p;
	size_t bytes, used;
	bool device;
};

static std::vector<struct area> areas;
static int opened;

static size_t room(void)
{
	const char *given = getenv("DPTRAIN_FAKE_MEMORY");

	return given ? strtoull(given, NULL, 10) : (size_t)8 << 30;
}

static size_t used(void)
{
	size_t sum = 0;

	for (const struct area &a : areas)
		sum += a.device ? a.used : 0;
	return sum;
}

static void *area_new(size_t bytes, bool device)
{
	const size_t pages = (bytes + 4095) / 4096 * 4096;
	const int access = device && !opened ? PROT_NONE : PROT_READ | PROT_WRITE;
	void *p;

	if (!bytes || (device && used() + bytes > room()))
		return NULL;
	p = mmap(NULL, pages, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	areas.push_back({ (char *)p, pages, bytes, device });
	return p;
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
	auto at = std::find_if(areas.begin(), areas.end(), [&](const struct area &a) { return a.p == p; });

	if (at == areas.end())
		return false;
	munmap(at->p, at->bytes);
	areas.erase(at);
	return true;
}

bool memory_is_device(const void *p)
{
	const struct area *a = find(p);

	return a && a->device;
}

bool memory_is_pinned(const void *p)
{
	const struct area *a = find(p);

	return a && !a->device;
}

void memory_room(size_t *ret_free, size_t *ret_total)
{
	*ret_total = room();
	*ret_free = *ret_total - used();
}

static void protect(int access)
{
	for (const struct area &a : areas)
		if (a.device)
			mprotect(a.p, a.bytes, access);
}

void memory_open(void)
{
	if (opened++ == 0)
		protect(PROT_READ | PROT_WRITE);
}

void memory_shut(void)
{
	if (--opened == 0)
		protect(PROT_NONE);
}
