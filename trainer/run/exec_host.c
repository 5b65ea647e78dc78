/* exec_host.c: the executor of host backends: two threads, two lists of items, one counter each: an item that must wait
 * for the other stream waits for that stream's counter to pass the item it depends on. Time is read only where the kind
 * of work changes. */
#include "trainer/run/exec.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/clock.h"

#define SPINS 400

struct host_item {
	const struct kernel *kernel;
	void *state;
	struct kernel_args args;
	int index; /* in the schedule */
	int wait;  /* index on the other stream, -1 none */
	bool signal, collective;
	enum exec_time kind;
	const struct node *node; /* for messages */
	double *seconds;	 /* of all runs; NULL: not asked for */
};

struct host_program {
	const struct program *program;
	struct host_item *items[STREAM_COUNT];
	int n[STREAM_COUNT];
	double *node_seconds; /* by node id */
};

struct host {
	struct exec exec;
	const struct prepared *prepared;
	struct host_program *programs;
	int n_programs;
	struct step_page page;

	pthread_t helper;
	bool helper_runs;
	pthread_mutex_t lock;
	pthread_cond_t to_helper, to_main;
	_Atomic int done[STREAM_COUNT]; /* index + 1 of the last complete item */
	_Atomic bool failed;
	const struct host_program *job; /* what the helper works on; NULL: nothing */
	bool quit;
	struct err helper_err;
	double helper_comm_s;
};

static enum exec_time kind_of(const struct node *n)
{
	if (n->op->collective)
		return EXEC_COMM_EXPOSED;
	switch (n->phase) {
	case PHASE_FORWARD:
		return EXEC_FORWARD;
	case PHASE_BACKWARD:
		return EXEC_BACKWARD;
	case PHASE_OPTIMIZER:
		return EXEC_OPTIMIZER;
	default:
		return EXEC_COMM_EXPOSED;
	}
}

static int fill_item(struct host *e, struct host_item *it, const struct program *p, int index, struct err *err)
{
	const struct schedule_item *s = &p->schedule.items[index];
	const struct node *n = s->node;
	void **operands = arena_array(p->graph->arena, (size_t)(n->n_in + n->n_out) + 1, sizeof(*operands));

	if (!operands)
		return err_set(err, ERR_NOMEM, "out of memory: operands of %s", n->name);
	for (int i = 0; i < n->n_in; i++)
		operands[i] = prepared_address(e->prepared, n->in[i]);
	for (int i = 0; i < n->n_out; i++)
		operands[n->n_in + i] = prepared_address(e->prepared, n->out[i]);
	*it = (struct host_item){
		.kernel = program_kernel(&e->prepared->opts, n),
		.state = p->state[n->id],
		.index = index,
		.wait = s->wait,
		.signal = s->signal,
		.collective = n->op->collective,
		.kind = kind_of(n),
		.node = n,
		.args = { .in = operands,
			  .out = operands + n->n_in,
			  .page = &e->page,
			  .workspace =
				  n->workspace_bytes ? e->prepared->slab[SPACE_PRIVATE] + n->workspace_offset : NULL },
	};
	return 0;
}

static int fill_program(struct host *e, struct host_program *ep, const struct program *p, struct err *err)
{
	ep->program = p;
	for (int s = 0; s < STREAM_COUNT; s++) {
		ep->items[s] = calloc((size_t)p->schedule.n + 1, sizeof(*ep->items[s]));
		if (!ep->items[s])
			return err_set(err, ERR_NOMEM, "out of memory: schedule of %s", p->name);
	}
	for (int i = 0; i < p->schedule.n; i++) {
		enum stream s = p->schedule.items[i].stream;
		int rc = fill_item(e, &ep->items[s][ep->n[s]++], p, i, err);

		if (rc)
			return rc;
	}
	return 0;
}

static void announce(struct host *e, enum stream s, int index, bool signal)
{
	atomic_store_explicit(&e->done[s], index + 1, memory_order_release);
	if (!signal)
		return;
	pthread_mutex_lock(&e->lock);
	pthread_cond_broadcast(s == STREAM_COMPUTE ? &e->to_helper : &e->to_main);
	pthread_mutex_unlock(&e->lock);
}

static bool reached(struct host *e, enum stream s, int index)
{
	return atomic_load_explicit(&e->done[s], memory_order_acquire) > index || atomic_load(&e->failed);
}

/* Until stream s has completed item index, or something failed. */
static void await(struct host *e, enum stream s, int index)
{
	for (int i = 0; i < SPINS; i++) {
		if (reached(e, s, index))
			return;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	pthread_mutex_lock(&e->lock);
	while (!reached(e, s, index))
		pthread_cond_wait(s == STREAM_COMPUTE ? &e->to_helper : &e->to_main, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* Makes both threads stop; a collective that is under way fails because the ranks' communicators are aborted. */
static void fail(struct host *e)
{
	atomic_store(&e->failed, true);
	for (int s = 0; s < STREAM_COUNT; s++) {
		struct comm *c = e->prepared->opts.env[s].comm;

		if (c)
			c->ops->abort(c);
	}
	pthread_mutex_lock(&e->lock);
	pthread_cond_broadcast(&e->to_helper);
	pthread_cond_broadcast(&e->to_main);
	pthread_mutex_unlock(&e->lock);
}

static int run_item(struct host_item *it, struct err *err)
{
	double start;
	int rc;

	if (!it->seconds)
		return it->kernel->run(it->state, &it->args, err);
	start = clock_mono_s();
	rc = it->kernel->run(it->state, &it->args, err);
	*it->seconds += clock_mono_s() - start;
	return rc;
}

static void help(struct host *e, const struct host_program *ep)
{
	e->helper_comm_s = 0;
	for (int i = 0; i < ep->n[STREAM_COMM]; i++) {
		struct host_item *it = &ep->items[STREAM_COMM][i];
		double start;

		if (it->wait >= 0)
			await(e, STREAM_COMPUTE, it->wait);
		if (atomic_load(&e->failed))
			return;
		start = clock_mono_s();
		if (run_item(it, &e->helper_err)) {
			fail(e);
			return;
		}
		e->helper_comm_s += clock_mono_s() - start;
		announce(e, STREAM_COMM, it->index, it->signal || i == ep->n[STREAM_COMM] - 1);
	}
}

static void *helper_main(void *arg)
{
	struct host *e = arg;

	pthread_mutex_lock(&e->lock);
	while (!e->quit) {
		const struct host_program *job = e->job;

		if (!job) {
			pthread_cond_wait(&e->to_helper, &e->lock);
			continue;
		}
		pthread_mutex_unlock(&e->lock);
		help(e, job);
		pthread_mutex_lock(&e->lock);
		e->job = NULL;
		pthread_cond_broadcast(&e->to_main);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

static int start_helper(struct host *e, struct err *err)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	rc = pthread_create(&e->helper, NULL, helper_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return err_set_errno(err, rc, "cannot start the communication thread");
	e->helper_runs = true;
	return 0;
}

static void host_close(struct exec *exec)
{
	struct host *e = (struct host *)exec;

	if (e->helper_runs) {
		pthread_mutex_lock(&e->lock);
		e->quit = true;
		pthread_cond_broadcast(&e->to_helper);
		pthread_mutex_unlock(&e->lock);
		pthread_join(e->helper, NULL);
	}
	for (int i = 0; i < e->n_programs; i++) {
		for (int s = 0; s < STREAM_COUNT; s++)
			free(e->programs[i].items[s]);
		free(e->programs[i].node_seconds);
	}
	free(e->programs);
	pthread_cond_destroy(&e->to_helper);
	pthread_cond_destroy(&e->to_main);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static int host_open(struct exec **ret, const struct prepared *p, struct err *err)
{
	struct host *e = calloc(1, sizeof(*e));
	bool comm = false;
	int rc = 0;

	if (!e)
		return err_set(err, ERR_NOMEM, "out of memory: executor");
	e->exec.ops = &exec_host;
	e->prepared = p;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->to_helper, NULL);
	pthread_cond_init(&e->to_main, NULL);
	e->programs = calloc((size_t)p->n_programs + 1, sizeof(*e->programs));
	if (!e->programs)
		rc = err_set(err, ERR_NOMEM, "out of memory: executor");
	for (int i = 0; !rc && i < p->n_programs; i++) {
		e->n_programs++;
		rc = fill_program(e, &e->programs[i], p->program[i], err);
		comm = comm || e->programs[i].n[STREAM_COMM];
	}
	if (!rc && comm)
		rc = start_helper(e, err);
	if (rc) {
		host_close(&e->exec);
		return rc;
	}
	*ret = &e->exec;
	return 0;
}

struct stopwatch {
	struct exec_times *times;
	enum exec_time kind;
	double since;
};

static void turn_to(struct stopwatch *w, enum exec_time kind)
{
	double now;

	if (kind == w->kind)
		return;
	now = clock_mono_s();
	w->times->by[w->kind] += now - w->since;
	w->kind = kind;
	w->since = now;
}

static int compute(struct host *e, const struct host_program *ep, struct stopwatch *w, struct err *err)
{
	for (int i = 0; i < ep->n[STREAM_COMPUTE]; i++) {
		struct host_item *it = &ep->items[STREAM_COMPUTE][i];
		int rc;

		if (it->wait >= 0 && !reached(e, STREAM_COMM, it->wait)) {
			turn_to(w, EXEC_COMM_EXPOSED);
			await(e, STREAM_COMM, it->wait);
		}
		if (atomic_load_explicit(&e->failed, memory_order_relaxed))
			return e->helper_err.code;
		turn_to(w, it->kind);
		if (it->collective) {
			double start = clock_mono_s();

			rc = run_item(it, err);
			w->times->comm_total += clock_mono_s() - start;
		} else {
			rc = run_item(it, err);
		}
		if (rc) {
			err_prefix(err, "%s", it->node->name);
			fail(e);
			return rc;
		}
		announce(e, STREAM_COMPUTE, it->index, it->signal);
	}
	return 0;
}

static const struct host_program *find(const struct host *e, const struct program *p)
{
	for (int i = 0; i < e->n_programs; i++)
		if (e->programs[i].program == p)
			return &e->programs[i];
	return NULL;
}

static void start_job(struct host *e, const struct host_program *ep)
{
	pthread_mutex_lock(&e->lock);
	atomic_store(&e->done[STREAM_COMPUTE], 0);
	atomic_store(&e->done[STREAM_COMM], 0);
	e->job = ep;
	pthread_cond_broadcast(&e->to_helper);
	pthread_mutex_unlock(&e->lock);
}

static void finish_job(struct host *e)
{
	pthread_mutex_lock(&e->lock);
	while (e->job)
		pthread_cond_wait(&e->to_main, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

static int host_run(struct exec *exec, const struct program *p, const struct step_page *page, struct exec_times *ret,
		    struct err *err)
{
	struct host *e = (struct host *)exec;
	const struct host_program *ep = find(e, p);
	struct exec_times times = { .comm_total = 0 };
	struct stopwatch w = { .times = &times, .kind = EXEC_FORWARD };
	bool helped = ep->n[STREAM_COMM] > 0;
	int rc;

	if (atomic_load(&e->failed))
		return err_set(err, ERR_PEER, "a collective failed before");
	e->page = *page;
	w.since = clock_mono_s();
	if (helped)
		start_job(e, ep);
	else
		atomic_store(&e->done[STREAM_COMPUTE], 0);
	rc = compute(e, ep, &w, err);
	if (helped) {
		turn_to(&w, EXEC_COMM_EXPOSED);
		finish_job(e);
		times.comm_total += e->helper_comm_s;
	}
	times.by[w.kind] += clock_mono_s() - w.since;
	if (helped && e->helper_err.code && (rc == 0 || !err->code)) {
		*err = e->helper_err;
		rc = err->code;
	}
	*ret = times;
	return rc;
}

static int profile_program(struct host_program *ep, struct err *err)
{
	size_t n = (size_t)ep->program->graph->n_nodes;

	if (!ep->node_seconds)
		ep->node_seconds = calloc(n + 1, sizeof(*ep->node_seconds));
	if (!ep->node_seconds)
		return err_set(err, ERR_NOMEM, "out of memory: times of %s", ep->program->name);
	memset(ep->node_seconds, 0, n * sizeof(*ep->node_seconds));
	for (int s = 0; s < STREAM_COUNT; s++)
		for (int i = 0; i < ep->n[s]; i++)
			ep->items[s][i].seconds = &ep->node_seconds[ep->items[s][i].node->id];
	return 0;
}

static int host_profile(struct exec *exec, struct err *err)
{
	struct host *e = (struct host *)exec;
	int rc = 0;

	for (int i = 0; !rc && i < e->n_programs; i++)
		rc = profile_program(&e->programs[i], err);
	return rc;
}

static const double *host_node_seconds(const struct exec *exec, const struct program *p)
{
	const struct host_program *ep = find((const struct host *)exec, p);

	return ep ? ep->node_seconds : NULL;
}

const struct exec_ops exec_host = {
	.name = "host",
	.slots = 1,
	.open = host_open,
	.close = host_close,
	.run = host_run,
	.profile = host_profile,
	.node_seconds = host_node_seconds,
};
