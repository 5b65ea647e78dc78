/* sendrecv_cuda.cu: sends a tensor from one rank's device to another's; without other ranks nothing happens. */
#include "trainer/backends/cuda/meet.h"

extern "C" {
#include "trainer/ops/sendrecv/sendrecv.h"
}

namespace {

struct ranks_call make_peer_call(const struct node *n, const struct kernel_args *a)
{
	const struct tensor *t = n->n_in ? n->in[0] : n->out[0];

	return { n->n_in ? a->in[0] : nullptr,
		 n->n_in ? nullptr : a->out[0],
		 cuda_count(t),
		 t->dtype,
		 a->stream,
		 static_cast<const struct sendrecv_attr *>(n->attr)->rank };
}

int run_send_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const struct ranks_call call = make_peer_call(m->node, a);

	return m->devices && call.count ? m->devices->ops->send(m->devices, &call, err) : 0;
}

int run_recv_cuda(void *state, const struct kernel_args *a, struct err *err)
{
	const struct collective_state *m = get_collective_state(state);
	const struct ranks_call call = make_peer_call(m->node, a);

	return m->devices && call.count ? m->devices->ops->recv(m->devices, &call, err) : 0;
}

} // namespace

MEET_KERNEL(send, meet_prepare, run_send_cuda);
MEET_KERNEL(recv, meet_prepare, run_recv_cuda);
