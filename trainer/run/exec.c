/* exec.c: which executor runs a run's programs, and what none of them may be given. It must not know how nodes run. */
#include "trainer/run/exec.h"

#include "trainer/run/exec_stream.h"

int exec_open(struct exec **ret, const struct exec_ops *ops, const struct prepared *p, struct err *err)
{
	for (int i = 0; i < p->n_programs; i++) {
		const struct program *program = p->program[i];

		if (program->schedule.slots > ops->slots)
			return err_set(err, ERR_UNSUPPORTED,
				       "program %s: its schedule has %d micro-batch slots, which executor %s does not "
				       "keep "
				       "apart in memory (it has %d)",
				       program->name, program->schedule.slots, ops->name, ops->slots);
	}
	return ops->open(ret, p, err);
}

int exec_new(struct exec **ret, const struct prepared *p, struct err *err)
{
	return exec_open(ret, p->opts.backend->streams ? &exec_stream : &exec_host, p, err);
}

void exec_free(struct exec *e)
{
	if (e)
		e->ops->close(e);
}

int exec_run(struct exec *e, const struct program *p, const struct exec_call *call, struct exec_times *ret,
	     struct err *err)
{
	return e->ops->run(e, p, call, ret, err);
}

int exec_profile(struct exec *e, struct err *err)
{
	return e->ops->profile(e, err);
}

const double *exec_node_seconds(const struct exec *e, const struct program *p)
{
	return e->ops->node_seconds(e, p);
}
