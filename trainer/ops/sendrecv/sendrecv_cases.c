/* sendrecv_cases.c: test cases without a communicator, where nothing is sent. tests/comm and tests/train cover
 * transfers between ranks. */
#include "trainer/ops/cases.h"
#include "trainer/ops/sendrecv/sendrecv.h"

static struct node *build_send_case(struct graph *g, const struct op_case *c)
{
	return send_add(g, case_input(g, "t", DTYPE_F32, SHAPE(c->size[0])), 1, STREAM_COMPUTE);
}

static struct node *build_recv_case(struct graph *g, const struct op_case *c)
{
	return recv_add(g, case_input(g, "t", DTYPE_F32, SHAPE(c->size[0])), 0, STREAM_COMPUTE);
}

const struct op_case cases_send[] = {
	{ "no communicator", .build = build_send_case, .exact = true, .size = { 37 } },
	{ NULL },
};

const struct op_case cases_recv[] = {
	{ "no communicator", .build = build_recv_case, .exact = true, .size = { 37 } },
	{ NULL },
};
