/* sendrecv_cuda.cu: a tensor from one rank's device to another's; with nobody there it stays. */
#include "trainer/backends/cuda/meet.h"

extern "C" {
#include "trainer/ops/sendrecv/sendrecv.h"
}

namespace {

struct ranks_call call_of(const struct node *n, const struct kernel_args *a)
{
	const struct tensor *t = n->n_in ? n->in[0] : n->out[0];

	return { n->n_in ? a->in[0] : nullptr,
		 n->n_in ? nullptr : a->out[0],
		 cuda_count(t),
		 t->dtype,
		 a->stream,
		 static_cast<const struct sendrecv_attr *>(n->attr)->rank };
}

int send_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct meeting *m = meeting_of(state);
	const struct ranks_call call = call_of(m->node, a);

	return m->devices && call.count ? m->devices->ops->send(m->devices, &call, err) : 0;
}

int recv_run(void *state, const struct kernel_args *a, struct err *err)
{
	const struct meeting *m = meeting_of(state);
	const struct ranks_call call = call_of(m->node, a);

	return m->devices && call.count ? m->devices->ops->recv(m->devices, &call, err) : 0;
}

} // namespace

MEET_KERNEL(send, meet_prepare, send_run);
MEET_KERNEL(recv, meet_prepare, recv_run);
