/* SPDX-License-Identifier: Apache-2.0 */
/* exec_calls.c: chooses the executor of a backend and calls it. */
#include "trainer/run/exec/exec_inside.h"

int exec_new(struct exec **ret, const struct prepared *p, struct err *err)
{
	const struct exec_ops *ops = p->opts.backend->streams ? &exec_stream : &exec_host;

	return ops->open(ret, p, err);
}

void exec_free(struct exec *e)
{
	if (e)
		e->ops->close(e);
}

int exec_ahead(const struct exec *e)
{
	return e->ops->ahead(e);
}

int exec_begin(struct exec *e, const struct program *p, const struct exec_call *call, struct err *err)
{
	return e->ops->begin(e, p, call, err);
}

int exec_fed(struct exec *e, struct err *err)
{
	return e->ops->fed(e, err);
}

int exec_end(struct exec *e, struct exec_done *ret, struct err *err)
{
	return e->ops->end(e, ret, err);
}

int exec_run(struct exec *e, const struct program *p, const struct exec_call *call, struct exec_done *ret,
	     struct err *err)
{
	int rc = exec_begin(e, p, call, err);

	return rc ? rc : exec_end(e, ret, err);
}

void exec_profile(struct exec *e)
{
	e->ops->profile(e);
}

const double *exec_node_seconds(const struct exec *e, const struct program *p)
{
	return e->ops->node_seconds(e, p);
}
