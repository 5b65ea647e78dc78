/* staging.c: see staging.h. */
#include "trainer/backends/cuda/staging.h"

#include "trainer/backends/cuda/fail.h"
#include "trainer/backends/cuda/cuda_module.h"

int staging_get(void *module, enum staging which, void **ret, struct err *err)
{
	struct cuda_module *m = module;
	const bool there = m->staging[which] || m->described;
	cudaError_t rc = there ? cudaSuccess : cudaMallocHost(&m->staging[which], STAGING_BYTES);

	if (rc != cudaSuccess)
		return cuda_fail(err, rc, "allocating pinned memory for file offloading");
	*ret = m->staging[which];
	return 0;
}

void staging_done(void *module)
{
	struct cuda_module *m = module;

	for (int i = 0; i < STAGING_COUNT; i++)
		if (m->staging[i])
			cudaFreeHost(m->staging[i]);
}
