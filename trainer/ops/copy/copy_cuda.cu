/* SPDX-License-Identifier: Apache-2.0 */
/* copy_cuda.cu: copies between the device and pinned memory, or within either; addresses determine the direction.
 * Copies from and to a mapped file go in pieces through pinned memory, which a host function in stream order fills from
 * the file or writes to it. Copies of one direction use one stream, so one buffer per direction suffices. */
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/ops/copy/copy.h"
}

inline namespace copy_kernels {

struct piece {
	unsigned char *file;
	void *staging;
	size_t bytes;
	bool fills; /* true: from the file to staging memory */
};

/* One route of the tensor: each of its slots has its own. CUDA graphs refer to its pieces, so it lives as long as the
 * kernel. */
struct copy_route {
	struct copy_route *next;
	unsigned char *file, *device;
	struct piece piece[];
};

struct copy_state {
	const struct node *n;
	bool fills;
	void *staging; /* NULL: no file, or no device */
	struct copy_route *routes;
};

static_assert(COPY_PIECE_BYTES == STAGING_BYTES, "a piece must fit the staging buffer");

size_t count_piece_bytes(size_t bytes, size_t at)
{
	return bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
}

void CUDART_CB move_file_piece(void *piece)
{
	const struct piece *p = static_cast<const struct piece *>(piece);

	memcpy(p->fills ? p->staging : p->file, p->fills ? p->file : p->staging, p->bytes);
	copy_give_back(p->file, p->bytes);
}

struct copy_route *new_copy_route(struct copy_state *s, unsigned char *file, unsigned char *device)
{
	const size_t bytes = tensor_bytes(s->n->in[0]), pieces = (bytes + STAGING_BYTES - 1) / STAGING_BYTES;
	struct copy_route *w = static_cast<struct copy_route *>(mem_alloc(sizeof(*w) + pieces * sizeof(w->piece[0])));

	*w = { s->routes, file, device };
	for (size_t at = 0; at < bytes; at += STAGING_BYTES)
		w->piece[at / STAGING_BYTES] = { file + at, s->staging, count_piece_bytes(bytes, at), s->fills };
	s->routes = w;
	return w;
}

/* Finds or creates a route; it is created by the first run, during warm-up. */
struct copy_route *find_copy_route(struct copy_state *s, const struct kernel_args *a)
{
	auto *from = static_cast<unsigned char *>(a->in[0]), *to = static_cast<unsigned char *>(a->out[0]);
	unsigned char *file = s->fills ? from : to, *device = s->fills ? to : from;

	for (struct copy_route *w = s->routes; w; w = w->next)
		if (w->file == file && w->device == device)
			return w;
	return new_copy_route(s, file, device);
}

void copy_mapped_file(const struct copy_state *s, struct copy_route *w, const struct kernel_args *a)
{
	const size_t bytes = tensor_bytes(s->n->in[0]);
	cudaStream_t stream = (cudaStream_t)a->stream;

	for (size_t at = 0; at < bytes; at += STAGING_BYTES) {
		struct piece *p = &w->piece[at / STAGING_BYTES];

		if (s->fills)
			cudaLaunchHostFunc(stream, move_file_piece, p);
		cudaMemcpyAsync(s->fills ? w->device + at : p->staging, s->fills ? p->staging : w->device + at,
				p->bytes, cudaMemcpyDefault, stream);
		if (!s->fills)
			cudaLaunchHostFunc(stream, move_file_piece, p);
	}
}

int prepare_copy_cuda(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const bool file = static_cast<const struct copy_attr *>(n->attr)->file;
	auto *s = static_cast<struct copy_state *>(mem_zalloc(sizeof(struct copy_state)));
	int rc = 0;

	s->n = n;
	s->fills = n->in[0]->space == SPACE_OFFLOAD;
	if (file)
		rc = staging_get(env->module, s->fills ? STAGING_IN : STAGING_OUT, &s->staging, err);
	if (rc)
		free(s);
	else
		*ret_state = s;
	return rc;
}

void run_copy_cuda(void *state, const struct kernel_args *a)
{
	auto *s = static_cast<struct copy_state *>(state);
	struct copy_route *w = s->staging ? find_copy_route(s, a) : nullptr;

	if (w)
		copy_mapped_file(s, w, a);
	else if (tensor_bytes(s->n->in[0]))
		cudaMemcpyAsync(a->out[0], a->in[0], tensor_bytes(s->n->in[0]), cudaMemcpyDefault,
				(cudaStream_t)a->stream);
}

void release_copy_cuda(void *state)
{
	auto *s = static_cast<struct copy_state *>(state);

	while (s && s->routes) {
		struct copy_route *w = s->routes;

		s->routes = w->next;
		free(w);
	}
	free(s);
}

} // namespace copy_kernels

CUDA_KERNEL_OF(copy, prepare_copy_cuda, run_copy_cuda, release_copy_cuda, nullptr);
