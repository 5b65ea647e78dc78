/* sendrecv_cases.c: without a communicator nothing travels; between ranks it is tested in tests/comm and tests/train. */
#include "trainer/ops/cases.h"
#include "trainer/ops/sendrecv/sendrecv.h"

static struct node *build_send(struct graph *g, const struct op_case *c)
{
	return send_add(g, case_input(g, "t", DTYPE_F32, SHAPE(c->size[0])), 1, STREAM_COMPUTE);
}

static struct node *build_recv(struct graph *g, const struct op_case *c)
{
	return recv_add(g, case_input(g, "t", DTYPE_F32, SHAPE(c->size[0])), 0, STREAM_COMPUTE);
}

const struct op_case cases_send[] = {
	{ "nobody there", .build = build_send, .exact = true, .size = { 37 } },
	{ NULL },
};

const struct op_case cases_recv[] = {
	{ "nobody there", .build = build_recv, .exact = true, .size = { 37 } },
	{ NULL },
};
