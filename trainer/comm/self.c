/* self.c: the communicator of one rank: every collective is complete before it starts. */
#include "trainer/comm/comm.h"

#include <stdlib.h>
#include <string.h>

struct self {
	struct comm comm;
	void *blocks[64]; /* allocated by alloc */
	int n_blocks;
};

static int self_allreduce(struct comm *c, void *data, int64_t count, enum dtype dtype, struct err *err)
{
	(void)c, (void)data, (void)count, (void)dtype, (void)err;
	return 0;
}

static int self_all_gather(struct comm *c, void *data, int64_t bytes_each, struct err *err)
{
	(void)c, (void)data, (void)bytes_each, (void)err;
	return 0;
}

static int self_broadcast(struct comm *c, void *data, size_t bytes, int root, struct err *err)
{
	(void)c, (void)data, (void)bytes, (void)root, (void)err;
	return 0;
}

static int self_send(struct comm *c, const void *data, size_t bytes, int to, struct err *err)
{
	(void)c, (void)data, (void)bytes;
	return err_set(err, ERR_UNSUPPORTED, "send to rank %d: there is only rank 0", to);
}

static int self_recv(struct comm *c, void *data, size_t bytes, int from, struct err *err)
{
	(void)c, (void)data, (void)bytes;
	return err_set(err, ERR_UNSUPPORTED, "receive from rank %d: there is only rank 0", from);
}

static int self_barrier(struct comm *c, struct err *err)
{
	(void)c, (void)err;
	return 0;
}

static int self_alloc(struct comm *c, size_t bytes, void **ret, struct err *err)
{
	struct self *s = (struct self *)c;
	size_t rounded = (bytes + 63) / 64 * 64;
	void *block;

	if (s->n_blocks == sizeof(s->blocks) / sizeof(s->blocks[0]))
		return err_set(err, ERR_LIMIT, "more than %d communication buffers", s->n_blocks);
	block = aligned_alloc(64, rounded ? rounded : 64);
	if (!block)
		return err_set(err, ERR_NOMEM, "out of memory: communication buffer of %zu bytes", bytes);
	memset(block, 0, rounded);
	s->blocks[s->n_blocks++] = block;
	*ret = block;
	return 0;
}

static int self_split(struct comm *c, int color, struct comm **ret, struct err *err)
{
	(void)c;
	if (color >= 0)
		return comm_self_open(ret, err);
	*ret = NULL;
	return 0;
}

static int self_check(struct comm *c, struct err *err)
{
	(void)c, (void)err;
	return 0;
}

static void self_abort(struct comm *c)
{
	(void)c;
}

static void self_limit(struct comm *c, double seconds)
{
	(void)c, (void)seconds;
}

static void self_close(struct comm *c)
{
	struct self *s = (struct self *)c;

	if (!s)
		return;
	while (s->n_blocks)
		free(s->blocks[--s->n_blocks]);
	free(s);
}

static const struct comm_ops self_ops = {
	.name = "self",
	.allreduce = self_allreduce,
	.reduce_scatter = self_allreduce,
	.all_gather = self_all_gather,
	.broadcast = self_broadcast,
	.send = self_send,
	.recv = self_recv,
	.barrier = self_barrier,
	.alloc = self_alloc,
	.split = self_split,
	.check = self_check,
	.limit = self_limit,
	.abort = self_abort,
	.close = self_close,
};

int comm_self_open(struct comm **ret, struct err *err)
{
	struct self *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ERR_NOMEM, "out of memory: communicator");
	s->comm = (struct comm){ .ops = &self_ops, .rank = 0, .world = 1 };
	*ret = &s->comm;
	return 0;
}
