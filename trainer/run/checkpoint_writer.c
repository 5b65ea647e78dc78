/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_writer.c: writes checkpoints in a thread while training continues. */
#include "trainer/run/observers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "tracker/base/log.h"
#include "tracker/mem/mem.h"
#include "trainer/state/tensor_files.h"

#define FLUSH_WAIT_S 10.0
#define NICE 10 /* niceness of the writing thread: compute threads wait for each other, so delaying one delays all */

struct checkpoint_writer {
	struct engine *e;
	struct report *report;
	char folder[4096];
	struct arena *arena; /* strings of the following lists; fixed once open */
	struct st_meta *config, *kernels;
	size_t n_config, n_kernels;

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool busy, quit;	      /* under lock */
	struct checkpoint_state next; /* what the thread writes while busy */
	double copy_s;		      /* seconds of its snapshot */

	/* Owned by the writer: the thread while busy, else the caller. */
	int64_t newest_step; /* written by this process or resumed from; -1: none */
	bool warned;
};

/* ---- writing ---- */

static const void *peek_snapshot(void *user, const struct tensor *t)
{
	return snapshot_peek(user, t);
}

/* Writes all points up to this step to the journal before the checkpoint gets its name: a run that continues from it
 * lacks none. */
static void flush_points_first(void *user)
{
	report_flush(((struct checkpoint_writer *)user)->report, FLUSH_WAIT_S);
}

/* Removes the oldest checkpoints beyond --save-total-limit; keeps the best one. */
static void remove_old_checkpoints(struct checkpoint_writer *s, const struct checkpoint_state *at)
{
	const struct run_config *cfg = s->e->rank.cfg;
	struct checkpoint_entry *list;
	struct err err = ERR_INIT;
	int64_t kept = 0;
	size_t n;

	if (!cfg->save_total_limit)
		return;
	if (checkpoint_list(&list, &n, s->folder, &err)) {
		log_warn("cannot remove older checkpoints: %s", err.text);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		bool best = at->has_best && list[i].step == at->best_step;

		if (list[i].segment < 0 || kept++ < cfg->save_total_limit || best)
			continue;
		if (checkpoint_remove(s->folder, list[i].step, &err))
			log_warn("cannot remove an older checkpoint: %s", err.text);
	}
	free(list);
}

/* Writes a checkpoint of the tensors of `access`, then removes old ones. */
static int write_checkpoint_now(struct checkpoint_writer *s, const struct checkpoint_state *at,
				const struct weights_access *access, struct err *err)
{
	struct files_meta meta;
	struct hf_config gpt;
	int rc;

	files_meta(&s->e->workload, s->e->rank.cfg, false, &meta);
	rc = checkpoint_write(&(struct checkpoint_write_opts){ .folder = s->folder,
							       .state = at,
							       .config = s->config,
							       .n_config = s->n_config,
							       .kernels = s->kernels,
							       .n_kernels = s->n_kernels,
							       .meta = meta.entry,
							       .n_meta = meta.n,
							       .gpt = files_gpt(&s->e->workload, &gpt) ? &gpt : NULL,
							       .graph = files_graph(&s->e->tensors),
							       .access = access,
							       .ready = flush_points_first,
							       .user = s },
			      err);
	if (rc)
		return rc;
	s->newest_step = at->step;
	s->warned = false;
	remove_old_checkpoints(s, at);
	return 0;
}

/* Runs in the thread: writes the snapshot, with the parts of the other ranks; reports a failure once. */
static void write_snapshot(struct checkpoint_writer *s)
{
	const struct tensors copy = snapshot_tensors(&s->e->tensors, s->e->rank.saving);
	const struct weights_access peek = { .peek = peek_snapshot, .user = &s->e->tensors };
	const struct weights_access access = copy.comm ? files_access(&copy) : peek;
	double cpu_s = clock_thread_s(), start_s = clock_mono_s();
	struct err err = ERR_INIT;
	int rc;

	if (copy.comm && copy.comm->rank > 0) {
		tensors_help(&copy, &err); /* rank 0 reports the failure */
		return;
	}
	rc = write_checkpoint_now(s, &s->next, &access, &err);
	if (copy.comm)
		rc = tensors_helped(&copy, rc, &err);
	if (!rc) {
		report_saved(s->report, s->next.step, s->copy_s, clock_thread_s() - cpu_s, clock_mono_s() - start_s);
		return;
	}
	if (s->warned)
		return;
	s->warned = true;
	log_warn("no checkpoint of step %lld, training continues: %s", (long long)s->next.step, err.text);
}

static void *saver_thread_main(void *user)
{
	struct checkpoint_writer *s = user;

	pthread_setname_np(pthread_self(), "dptrain-save");
	setpriority(PRIO_PROCESS, 0, NICE); /* 0: this thread */
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->busy && !s->quit)
			pthread_cond_wait(&s->change, &s->lock);
		if (!s->busy)
			break;
		pthread_mutex_unlock(&s->lock);
		write_snapshot(s);
		pthread_mutex_lock(&s->lock);
		s->busy = false;
		pthread_cond_broadcast(&s->change);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void wait_idle(struct checkpoint_writer *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->busy)
		pthread_cond_wait(&s->change, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

int checkpoint_writer_save(struct checkpoint_writer *s, const struct checkpoint_state *at, struct err *err)
{
	double start_s = clock_mono_s();
	int rc;

	wait_idle(s);
	if (engine_is_root(s->e))
		report_waited(s->report, at->step, clock_mono_s() - start_s);
	start_s = clock_mono_s();
	rc = snapshot_take(&s->e->tensors, err);
	if (rc)
		return rc;
	s->copy_s = clock_mono_s() - start_s;
	pthread_mutex_lock(&s->lock);
	s->next = *at;
	s->busy = true;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int checkpoint_writer_finish(struct checkpoint_writer *s, const struct checkpoint_state *at, struct err *err)
{
	/* not over the communicator of the steps: that is aborted when a step was given up */
	const struct tensors tensors = tensors_over(&s->e->tensors, s->e->rank.saving);
	const struct weights_access access = files_access(&tensors);
	int rc = 0;

	wait_idle(s);
	if (!engine_is_root(s->e))
		return tensors_help(&tensors, err);
	if (s->newest_step != at->step)
		rc = write_checkpoint_now(s, at, &access, err);
	return tensors_helped(&tensors, rc, err);
}

/* ---- open, close ---- */

static void add_config(void *user, const struct config_item *item)
{
	struct checkpoint_writer *s = user;

	s->config[s->n_config].key = arena_strdup(s->arena, item->name);
	s->config[s->n_config++].value = arena_strdup(s->arena, item->value);
}

static void count_kernel(void *user, const char *key, const char *name)
{
	(void)key, (void)name;
	++*(size_t *)user;
}

static void add_kernel(void *user, const char *key, const char *name)
{
	struct checkpoint_writer *s = user;

	s->kernels[s->n_kernels].key = arena_strdup(s->arena, key);
	s->kernels[s->n_kernels++].value = arena_strdup(s->arena, name);
}

static void collect_config(struct checkpoint_writer *s)
{
	const struct backend *b = s->e->rank.backend;
	size_t n = 0;

	if (b->choices)
		b->choices(s->e->rank.module, count_kernel, &n);
	s->config = arena_array(s->arena, FLAG_COUNT, sizeof(*s->config));
	s->kernels = arena_array(s->arena, n + 1, sizeof(*s->kernels));
	if (b->choices)
		b->choices(s->e->rank.module, add_kernel, s);
	config_each(s->e->rank.cfg, add_config, s);
}

static int start_saver_thread(struct checkpoint_writer *s, struct err *err)
{
	int failure = thread_start(&s->thread, saver_thread_main, s);

	if (failure)
		return err_set_errno(err, failure, "cannot start a thread for checkpoints");
	s->has_thread = true;
	return 0;
}

int checkpoint_writer_open(struct checkpoint_writer **ret, struct engine *e, struct report *report, int64_t have_step,
			   struct err *err)
{
	struct checkpoint_writer *s = mem_zalloc(sizeof(*s));
	int rc = 0;

	s->e = e;
	s->report = report;
	s->newest_step = have_step;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->change, NULL);
	s->arena = arena_new();
	collect_config(s);
	if ((size_t)snprintf(s->folder, sizeof(s->folder), "%s/checkpoints", report_dir(report)) >= sizeof(s->folder))
		rc = err_set(err, ERR_USAGE, "%.200s…: the path is too long", report_dir(report));
	if (!rc && e->prepared.snapshot_bytes)
		rc = start_saver_thread(s, err);
	if (rc) {
		checkpoint_writer_close(s);
		return rc;
	}
	if (engine_is_root(e))
		checkpoint_sweep(s->folder);
	*ret = s;
	return 0;
}

void checkpoint_writer_close(struct checkpoint_writer *s)
{
	if (!s)
		return;
	if (s->has_thread) {
		pthread_mutex_lock(&s->lock);
		s->quit = true;
		pthread_cond_broadcast(&s->change);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->change);
	arena_free(s->arena);
	free(s);
}
