/* copy_cuda.cu: between the device and pinned memory, or within either: the addresses tell. From and to a mapped file
 * by pieces: each goes through pinned memory, which a function of the host, in the stream's order, fills from the file
 * or empties into it. The copies of one direction have one stream, so one buffer a direction does. */
#include <stdlib.h>
#include <string.h>

#include "trainer/backends/cuda/cuda.h"

extern "C" {
#include "trainer/backends/cuda/staging.h"
#include "trainer/ops/copy/copy.h"
#include "trainer/ops/copy/copy_file.h"
}

namespace {

struct piece {
	unsigned char *file;
	void *staging;
	size_t bytes;
	bool fills; /* the staging memory, from the file */
};

/* One way of the tensor: its slots each have their own. Graphs remember its pieces: it lives as long as the kernel. */
struct way {
	struct way *next;
	unsigned char *file, *device;
	struct piece piece[];
};

struct state {
	const struct node *n;
	bool fills;
	void *staging; /* NULL: no file, or no device to copy to */
	struct way *ways;
};

static_assert(COPY_PIECE_BYTES == STAGING_BYTES, "a piece is what there is room for");

size_t piece_bytes(size_t bytes, size_t at)
{
	return bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
}

void CUDART_CB move(void *piece)
{
	const struct piece *p = static_cast<const struct piece *>(piece);

	memcpy(p->fills ? p->staging : p->file, p->fills ? p->file : p->staging, p->bytes);
	copy_give_back(p->file, p->bytes);
}

struct way *way_new(struct state *s, unsigned char *file, unsigned char *device)
{
	const size_t bytes = tensor_bytes(s->n->in[0]), pieces = (bytes + STAGING_BYTES - 1) / STAGING_BYTES;
	struct way *w = static_cast<struct way *>(malloc(sizeof(*w) + pieces * sizeof(w->piece[0])));

	if (!w)
		return nullptr;
	*w = { s->ways, file, device };
	for (size_t at = 0; at < bytes; at += STAGING_BYTES)
		w->piece[at / STAGING_BYTES] = { file + at, s->staging, piece_bytes(bytes, at), s->fills };
	s->ways = w;
	return w;
}

/* Made when it is first gone: in the rehearsal. */
struct way *way_of(struct state *s, const struct kernel_args *a)
{
	auto *from = static_cast<unsigned char *>(a->in[0]), *to = static_cast<unsigned char *>(a->out[0]);
	unsigned char *file = s->fills ? from : to, *device = s->fills ? to : from;

	for (struct way *w = s->ways; w; w = w->next)
		if (w->file == file && w->device == device)
			return w;
	return way_new(s, file, device);
}

int copy_file(struct state *s, const struct kernel_args *a, struct err *err)
{
	const size_t bytes = tensor_bytes(s->n->in[0]);
	cudaStream_t stream = (cudaStream_t)a->stream;
	struct way *w = way_of(s, a);

	if (!w)
		return err_set(err, ERR_NOMEM, "cuda: out of memory: %s", s->n->name);
	for (size_t at = 0; at < bytes; at += STAGING_BYTES) {
		struct piece *p = &w->piece[at / STAGING_BYTES];

		if (s->fills)
			cudaLaunchHostFunc(stream, move, p);
		cudaMemcpyAsync(s->fills ? w->device + at : p->staging, s->fills ? p->staging : w->device + at,
				p->bytes, cudaMemcpyDefault, stream);
		if (!s->fills)
			cudaLaunchHostFunc(stream, move, p);
	}
	return cuda_launched(s->n, err);
}

int copy_prepare(const struct kernel_env *env, struct node *n, void **ret_state, struct err *err)
{
	const bool file = static_cast<const struct copy_attr *>(n->attr)->file;
	auto *s = static_cast<struct state *>(calloc(1, sizeof(struct state)));
	int rc = 0;

	if (!s)
		return err_set(err, ERR_NOMEM, "cuda: out of memory: %s", n->name);
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

int copy_run(void *state, const struct kernel_args *a, struct err *err)
{
	auto *s = static_cast<struct state *>(state);

	if (s->staging)
		return copy_file(s, a, err);
	if (tensor_bytes(s->n->in[0]))
		cudaMemcpyAsync(a->out[0], a->in[0], tensor_bytes(s->n->in[0]), cudaMemcpyDefault,
				(cudaStream_t)a->stream);
	return cuda_launched(s->n, err);
}

void copy_release(void *state)
{
	auto *s = static_cast<struct state *>(state);

	while (s && s->ways) {
		struct way *w = s->ways;

		s->ways = w->next;
		free(w);
	}
	free(s);
}

} // namespace

CUDA_KERNEL_OF(copy, copy_prepare, copy_run, copy_release, nullptr);
