/* comm_volume.c: see comm_volume.h. */
#include "trainer/program/comm_volume.h"

#include "trainer/ops/ops.h"
#include "trainer/ops/partial_sums/partial_sums.h"

#define SMALL_BYTES 16384 /* as in communicators */
#define MIB 1048576.0

static const int kinds[COMM_VOLUME_KINDS] = { OP_allreduce, OP_all_gather, OP_reduce_scatter, OP_send };

/* Returns the number of ranks in this rank's group of that kind. */
static int count_group_ranks(const struct program_opts *o, enum group group)
{
	const struct strategy *s = o->strategy;
	int own, n = 0;

	if (group == GROUP_WORLD || !s->group_of)
		return o->sharing.world;
	own = s->group_of(&o->sharing, group, o->sharing.rank);
	for (int r = 0; r < o->sharing.world; r++)
		n += s->group_of(&o->sharing, group, r) == own;
	return n;
}

/* Returns the room for terms (trainer/ops/partial_sums); 0: a plain sum. */
static int terms_room(const struct node *n)
{
	const bool sum = n->op->id == OP_allreduce || n->op->id == OP_reduce_scatter;
	const struct partial_sums_attr *a = sum ? n->attr : NULL;

	return a ? a->room : 0;
}

static double bytes_sent_by_node(const struct program_opts *o, const struct node *n, bool first)
{
	const double ranks = count_group_ranks(o, n->group);
	const int room = terms_room(n);
	const double roots = room ? o->sharing.roots : 1; /* each root is sent */
	const double bytes = (double)tensor_bytes(n->in[0]) / (room ? room : 1);

	if (n->op->id == OP_send)
		return bytes;
	if (n->op->id == OP_allreduce)
		return bytes <= SMALL_BYTES ? roots * bytes * (ranks - 1) : (roots + 1) * bytes * (ranks - 1) / ranks;
	if (n->op->id == OP_reduce_scatter)
		return roots * bytes * (ranks - 1) / ranks;
	if (n->once && !first)
		return 0;
	return bytes * (ranks - 1) / ranks;
}

/* Returns how often a node runs in a program: messages once for each micro-batch, all else once. */
static int runs_per_program(const struct program *p, const struct node *n)
{
	return n->op->id == OP_send ? p->schedule.slots : 1;
}

/* The first program of a kind has the largest batch. */
static void add_program_traffic(const struct prepared *p, enum program_kind kind, bool first, double times,
				double sent[COMM_VOLUME_KINDS])
{
	const struct program *program = NULL;

	for (int i = p->n_programs - 1; i >= 0; i--)
		program = p->program[i]->kind == kind ? p->program[i] : program;
	for (int i = 0; program && i < program->graph->n_nodes; i++)
		for (size_t k = 0; k < COMM_VOLUME_KINDS; k++)
			if (program->graph->nodes[i]->op->id == kinds[k])
				sent[k] += times * runs_per_program(program, program->graph->nodes[i]) *
					   bytes_sent_by_node(&p->opts, program->graph->nodes[i], first);
}

void comm_volume_sent(const struct prepared *p, int64_t micros, double sent[COMM_VOLUME_KINDS])
{
	for (size_t k = 0; k < COMM_VOLUME_KINDS; k++)
		sent[k] = 0;
	if (p->opts.sharing.world == 1)
		return;
	add_program_traffic(p, PROGRAM_STEP, micros == 1, 1, sent);
	if (micros > 1) {
		add_program_traffic(p, PROGRAM_MICRO, true, 1, sent);
		add_program_traffic(p, PROGRAM_MICRO, false, (double)micros - 2, sent);
	}
}

void comm_volume_table(const struct prepared *p, int64_t micros, struct buf *out)
{
	double sent[COMM_VOLUME_KINDS];

	if (p->opts.sharing.world == 1)
		return;
	comm_volume_sent(p, micros, sent);
	buf_adds(out, "sent by a rank in a step:\n");
	for (size_t k = 0; k < COMM_VOLUME_KINDS; k++)
		if (sent[k] > 0)
			buf_addf(out, "  %-14s %8.1f MiB\n", ops_table[kinds[k]]->name, sent[k] / MIB);
}
