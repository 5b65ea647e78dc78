/* exec_stream_time.c: reads the times of a finished run from its events: phases, nodes, spans of a trace. */
#include "trainer/run/exec/exec_stream_inside.h"

#include "tracker/base/clock.h"

int stream_times(struct stream_executor *e, const struct stream_program *sp, int slot, struct exec_times *ret,
		      struct err *err)
{
	struct exec_times times = { .comm_total = 0 };
	int rc = 0;

	for (int i = 0; !rc && i + 1 < sp->n_marks; i++) {
		double s = 0;

		rc = e->ops->seconds(e->module, sp->marks[i].event[slot], sp->marks[i + 1].event[slot], &s, err);
		times.by[sp->marks[i].kind] += s;
	}
	if (!rc)
		*ret = times;
	return rc;
}

int stream_trace_begin(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < sp->n; i++) {
		rc = stream_event(e, &sp->items[i].from, true, err);
		if (!rc)
			rc = stream_event(e, &sp->items[i].to, true, err);
	}
	return rc;
}

struct traced_run { /* of a traced run */
	struct stream_executor *executor;
	const struct stream_program *program;
	struct trace *trace;
	int slot;
	double end_s; /* host clock when it was finished */
};

static int add_span(const struct traced_run *t, struct trace_span s, struct event_handle *from, struct event_handle *to,
		    struct err *err)
{
	struct event_handle *last = t->program->marks[t->program->n_marks - 1].event[t->slot];
	double from_end = 0, to_end = 0;
	int rc = t->executor->ops->seconds(t->executor->module, from, last, &from_end, err);

	if (!rc)
		rc = t->executor->ops->seconds(t->executor->module, to, last, &to_end, err);
	s.from_s = t->end_s - from_end;
	s.to_s = t->end_s - to_end;
	if (!rc)
		trace_add(t->trace, &s);
	return rc;
}

/* The marks of the compute stream divide the step without gaps; every node is a span of its stream. */
int stream_trace_end(struct stream_executor *e, int slot, struct err *err)
{
	const struct stream_program *sp = e->run[slot].program;
	const struct traced_run timing = { e, sp, e->run[slot].trace, slot, clock_mono_s() }, *t = &timing;
	int rc = 0;

	for (int i = 0; !rc && i + 1 < sp->n_marks; i++) {
		const char *kind = exec_time_name(sp->marks[i].kind);

		rc = add_span(t, (struct trace_span){ TRACE_STEP_ROW, 0, kind, kind, -1, 0, 0 },
			      sp->marks[i].event[t->slot], sp->marks[i + 1].event[t->slot], err);
	}
	for (int i = 0; !rc && i < sp->n; i++) {
		const struct stream_item *it = &sp->items[i];
		const char *phase = it->node->op->collective ? "comm" : phase_name(it->node->phase);

		rc = add_span(t,
			      (struct trace_span){ stream_name(it->stream), 0, it->node->name, phase, it->node->id, 0,
						   0 },
			      it->from, it->to, err);
	}
	return rc;
}

int stream_node_seconds(struct stream_executor *e, struct stream_program *sp, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < sp->n; i++) {
		const struct stream_item *it = &sp->items[i];
		double s = 0;

		rc = e->ops->seconds(e->module, it->from, it->to, &s, err);
		sp->node_seconds[it->node->id] += s;
	}
	return rc;
}
