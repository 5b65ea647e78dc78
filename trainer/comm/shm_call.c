/* SPDX-License-Identifier: Apache-2.0 */
/* shm_call.c: how the ranks of one machine enter a collective: each announces its call, and all compare them. Whose
 * buffers are shared follows from that. */
#include "trainer/comm/shm_area.h"

struct shm_area *shm_area_of(struct comm *c)
{
	return &((struct shm *)c)->area;
}

unsigned char *shm_region_part(const struct shm_area *a, int region, int r)
{
	const struct shm_region *g = &a->root->region[region];

	return g->base + (size_t)a->root_rank[r] * g->stride_bytes;
}

static int find_alloc_region(const struct shm_area *a, const void *data, size_t bytes)
{
	const unsigned char *p = data;

	for (int i = 0; i < a->root->n_regions; i++) {
		const unsigned char *own = shm_region_part(a, i, a->rank);

		if (p >= own && p + bytes <= own + a->root->region[i].stride_bytes)
			return i;
	}
	return -1;
}

struct shm_call shm_describe_call(const struct shm_area *a, const void *data, size_t bytes)
{
	struct shm_call call = { .region = find_alloc_region(a, data, bytes), .root = -1 };

	if (call.region >= 0)
		call.offset = (uint64_t)((const unsigned char *)data - shm_region_part(a, call.region, a->rank));
	return call;
}

unsigned char *shm_peer_buffer(const struct shm_area *a, int r)
{
	const struct shm_call *call = shm_area_call(a, r);

	return shm_region_part(a, call->region, r) + call->offset;
}

int shm_begin(struct shm_area *a, const struct shm_call *own, bool *ret_direct, struct err *err)
{
	bool direct = true;
	int rc = shm_area_meet(a, own, err);

	if (rc)
		return rc;
	for (int r = 0; r < a->world; r++) {
		const struct shm_call *peer = shm_area_call(a, r);

		direct = direct && peer->region >= 0 && peer->region < a->root->n_regions;
		if (peer->op == own->op && peer->count == own->count && peer->dtype == own->dtype &&
		    peer->root == own->root)
			continue;
		shm_area_abort(a, -1);
		return err_set(err, ERR_PEER,
			       "ranks disagree at meeting %u: rank %d calls %s of %lld elements, rank %d another "
			       "collective or size (%lld)",
			       a->meeting, shm_area_number(a, a->rank), own->what, (long long)own->count,
			       shm_area_number(a, r), (long long)peer->count);
	}
	*ret_direct = direct;
	return 0;
}

unsigned char *shm_stage(const struct shm_area *a, int r)
{
	return shm_area_stage(a, r) + 2 * SHM_SMALL_BYTES;
}
