/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c: rank 0 finds and checks the checkpoint and sends the result to all ranks. */
#include "trainer/state/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "tracker/base/log.h"
#include "tracker/dptrack.h"
#include "tracker/mem/mem.h"
#include "trainer/program/planning.h"
#include "trainer/state/initial.h"
#include "trainer/state/tensor_files.h"

#define LOCK "lock"
#define LOCK_WAIT_S 5.0 /* killed processes may still be ending */
#define FOLDER "checkpoints"

struct resume_search {
	const struct run_config *cfg;
	const struct workload *workload;
	const struct graph *graph; /* graph with the wanted tensors */
	struct resume *r;
	struct err *err;
	const struct shared_status *shared_status; /* of the run to continue after a rank has failed; else NULL */
};

/* ---- the lock of a run's folder ---- */

int resume_lock(int *ret_fd, const char *run_dir, double wait_s, struct err *err)
{
	double until = clock_mono_s() + wait_s;
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", run_dir, LOCK);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set_errno(err, errno, "cannot open %.300s", path);
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno == EWOULDBLOCK && clock_mono_s() < until) {
			clock_sleep_s(0.02);
			continue;
		}
		close(fd);
		if (errno == EWOULDBLOCK)
			return err_set(err, ERR_BUSY,
				       "%.300s is being written by another process: stop it, or wait until it ends",
				       run_dir);
		return err_set_errno(err, errno, "cannot lock %.300s", path);
	}
	*ret_fd = fd;
	return 0;
}

/* ---- checks of a checkpoint ---- */

struct comparison {
	const struct checkpoint *c;
	const char *path;
	bool moved_end;
	struct err *err;
	int rc;
};

static void compare_item(void *user, const struct config_item *item)
{
	struct comparison *k = user;
	const char *was = checkpoint_config(k->c, item->name);
	char flag[64];

	if (k->rc || !was || !strcmp(was, item->value))
		return;
	k->moved_end |= item->id == FLAG_epochs || item->id == FLAG_max_steps;
	if (item->traits & (CONFIG_SEGMENT | CONFIG_CHANGES))
		return;
	snprintf(flag, sizeof(flag), "--%s", item->name);
	for (char *p = flag; *p; p++)
		*p = *p == '_' ? '-' : *p;
	k->rc = err_set(k->err, ERR_USAGE,
			"%.200s: the run was begun with %s %.60s, not %.60s; give the same, or begin a new run with "
			"--init-from %.100s",
			k->path, flag, *was ? was : "(not given)", *item->value ? item->value : "(not given)", k->path);
}

static int check_fits(struct resume_search *s, const struct checkpoint *c, const char *path)
{
	const struct checkpoint_state *at = checkpoint_state(c);
	struct comparison k = { .c = c, .path = path, .err = s->err };

	config_each(s->cfg, compare_item, &k);
	if (k.rc)
		return k.rc;
	s->r->moved_end = k.moved_end;
	if (strcmp(at->data_hash, s->workload->identity) && strcmp(at->data_hash, s->workload->data->hash))
		return err_set(s->err, ERR_USAGE,
			       "%.200s: the run was begun with other data than that of %.200s, for training or "
			       "evaluation; give the same, or begin a new run with --init-from %.100s",
			       path, s->workload->data->path, path);
	return 0;
}

/* Returns true if the best value so far belongs to the series that --save-best names now; without a series the best one
 * is kept. */
static bool same_best_series(const char *now, const char *was)
{
	return !now || (was && !strcmp(now, was));
}

/* Fills s->r. *ret_damaged distinguishes an unusable checkpoint from one of a run with other settings. */
static int try_checkpoint(struct resume_search *s, const char *path, bool *ret_damaged)
{
	struct checkpoint *c = NULL;
	int rc = checkpoint_open(&c, path, s->err);

	*ret_damaged = true;
	if (!rc && s->r->run_id[0] && strcmp(checkpoint_state(c)->run_id, s->r->run_id))
		rc = err_set(s->err, ERR_USAGE, "%.300s: belongs to another run", path);
	if (!rc && !s->cfg->test_only) {
		rc = check_fits(s, c, path);
		*ret_damaged = !rc;
	}
	if (!rc)
		rc = checkpoint_verify(c, s->graph, s->err);
	if (!rc && s->workload->base_hash[0]) {
		rc = adapter_check_base(arena_printf(s->graph->arena, "%s/" ADAPTER_FOLDER, path),
					s->workload->base_hash, s->cfg->init_from, s->err);
		*ret_damaged &= !rc;
	}
	if (!rc) {
		s->r->at = *checkpoint_state(c);
		s->r->at.has_best &= same_best_series(s->cfg->save_best, checkpoint_config(c, "save_best"));
		s->r->loads = true;
		snprintf(s->r->path, sizeof(s->r->path), "%s", path);
		snprintf(s->r->run_id, sizeof(s->r->run_id), "%s", s->r->at.run_id);
	}
	checkpoint_close(c);
	return rc;
}

/* Takes the newest usable checkpoint in a folder; finding none is no failure. */
static int try_checkpoint_folder(struct resume_search *s, const char *folder)
{
	struct checkpoint_entry *list;
	char path[4096];
	bool damaged;
	size_t n;
	int rc = checkpoint_list(&list, &n, folder, s->err);

	if (rc)
		return rc;
	for (size_t i = 0; !rc && !s->r->loads && i < n; i++) {
		rc = checkpoint_path(path, sizeof(path), folder, list[i].step, s->err);
		if (!rc)
			rc = try_checkpoint(s, path, &damaged);
		else
			damaged = false;
		if (rc && damaged) {
			log_warn("skipped: %s", s->err->text);
			*s->err = (struct err)ERR_INIT;
			rc = 0;
		}
	}
	free(list);
	return rc;
}

/* ---- choice of the run ---- */

static int find_run_to_resume(struct resume_search *s, const struct dptrack_run_opts *o, struct dptrack_found *ret)
{
	struct dptrack_error error = { 0, "" };
	int code = dptrack_find(ret, o, &error);

	if (code == DPTRACK_NOENT)
		return ERR_NOENT;
	if (code)
		return err_set(s->err, ERR_USAGE, "--resume: %s", error.text);
	return 0;
}

/* A run that another process is writing is a usage error of this process. */
static int lock_run_folder(struct resume_search *s, const char *dir)
{
	int rc;

	if (s->cfg->test_only)
		return 0;
	rc = resume_lock(&s->r->lock_fd, dir, LOCK_WAIT_S, s->err);
	return rc == ERR_BUSY ? s->err->code = ERR_USAGE : rc;
}

/* --resume auto: finds the run by experiment and name, and its newest usable checkpoint. */
static int find_auto_run(struct resume_search *s)
{
	const struct run_config *cfg = s->cfg;
	struct dptrack_found found;
	char folder[4200];
	int rc = find_run_to_resume(s,
				    &(struct dptrack_run_opts){ .runs_dir = cfg->runs_dir,
								.experiment = cfg->experiment,
								.run_name = cfg->run_name },
				    &found);

	if (rc == ERR_NOENT && cfg->test_only)
		return err_set(s->err, ERR_USAGE, "--resume auto: no run %.100s of experiment %.100s in %.200s to test",
			       cfg->run_name, cfg->experiment, cfg->runs_dir);
	if (rc == ERR_NOENT)
		return 0;
	if (!rc)
		rc = lock_run_folder(s, found.dir);
	if (rc)
		return rc;
	s->r->reopens = true;
	memcpy(s->r->run_id, found.id, sizeof(s->r->run_id));
	snprintf(folder, sizeof(folder), "%s/%s", found.dir, FOLDER);
	return try_checkpoint_folder(s, folder);
}

/* Finds the run of the ranks before a restart. It continues from its newest checkpoint, or from its first step without
 * one. */
static int find_restarted_run(struct resume_search *s)
{
	struct dptrack_found found;
	char folder[4200];
	int rc;

	memcpy(s->r->run_id, s->shared_status->run_id, sizeof(s->r->run_id));
	rc = find_run_to_resume(s, &(struct dptrack_run_opts){ .runs_dir = s->cfg->runs_dir, .run_id = s->r->run_id },
				&found);
	if (rc == ERR_NOENT)
		return err_set(s->err, ERR_NOENT, "run %s has disappeared from %s", s->r->run_id, s->cfg->runs_dir);
	if (!rc)
		rc = lock_run_folder(s, found.dir);
	if (rc)
		return rc;
	s->r->reopens = true;
	snprintf(folder, sizeof(folder), "%s/%s", found.dir, FOLDER);
	return try_checkpoint_folder(s, folder);
}

static bool has_entry(const char *path, const char *name)
{
	char whole[4200];
	struct stat st;

	return (size_t)snprintf(whole, sizeof(whole), "%s/%s", path, name) < sizeof(whole) && !stat(whole, &st);
}

/* --resume PATH: a run's folder or a checkpoint. The run is reopened where --runs-dir has it. */
static int find_named_checkpoint(struct resume_search *s)
{
	const struct run_config *cfg = s->cfg;
	struct dptrack_found found;
	char folder[4200];
	bool damaged;
	int rc;

	if (has_entry(cfg->resume, FOLDER)) {
		snprintf(folder, sizeof(folder), "%s/%s", cfg->resume, FOLDER);
		rc = try_checkpoint_folder(s, folder);
		if (!rc && !s->r->loads)
			rc = err_set(s->err, ERR_USAGE, "--resume %.300s: no usable checkpoint found there",
				     cfg->resume);
	} else {
		rc = try_checkpoint(s, cfg->resume, &damaged);
	}
	if (rc)
		return rc;
	rc = find_run_to_resume(s, &(struct dptrack_run_opts){ .runs_dir = cfg->runs_dir, .run_id = s->r->run_id },
				&found);
	if (rc == ERR_NOENT) {
		log_info("run %s is not in %s: beginning a new run from its checkpoint", s->r->run_id, cfg->runs_dir);
		return 0;
	}
	s->r->reopens = true;
	return rc ? rc : lock_run_folder(s, found.dir);
}

/* ---- settings of the run ---- */

/* Opens the newest readable checkpoint of what --resume names; NULL: none. */
static struct checkpoint *open_newest_checkpoint(const struct run_config *cfg)
{
	struct dptrack_run_opts o = { .runs_dir = cfg->runs_dir,
				      .experiment = cfg->experiment,
				      .run_name = cfg->run_name };
	struct dptrack_error ignored = { 0, "" };
	struct checkpoint_entry *list = NULL;
	struct checkpoint *c = NULL;
	struct dptrack_found found;
	char folder[4200], path[4300];
	bool is_auto = !strcmp(cfg->resume, "auto");
	size_t n = 0;

	if (is_auto && dptrack_find(&found, &o, &ignored))
		return NULL;
	if (!is_auto && !has_entry(cfg->resume, FOLDER))
		return checkpoint_open(&c, cfg->resume, NULL) ? NULL : c;
	snprintf(folder, sizeof(folder), "%.4000s/%s", is_auto ? found.dir : cfg->resume, FOLDER);
	if (checkpoint_list(&list, &n, folder, NULL))
		return NULL;
	for (size_t i = 0; !c && i < n; i++)
		if (!checkpoint_path(path, sizeof(path), folder, list[i].step, NULL) && checkpoint_open(&c, path, NULL))
			c = NULL;
	free(list);
	return c;
}

/* Returns true if the run of the checkpoint is below this folder of runs: a copy elsewhere is not. */
static bool holds_resumed_run(const char *runs_dir, const struct run_config *cfg)
{
	struct checkpoint *c = open_newest_checkpoint(cfg);
	struct dptrack_error ignored = { 0, "" };
	struct dptrack_found found;
	bool holds = c && !dptrack_find(&found,
					&(struct dptrack_run_opts){ .runs_dir = runs_dir,
								    .run_id = checkpoint_state(c)->run_id },
					&ignored);

	checkpoint_close(c);
	return holds;
}

/* Sets --runs-dir from "…/<experiment>/<run>/checkpoints/step-5", or from the run's folder. */
static int settle_runs_dir(struct run_config *cfg, struct err *err)
{
	char path[4096], *slash;
	int up;

	if (!strcmp(cfg->resume, "auto"))
		return 0;
	if (!realpath(cfg->resume, path) || (!has_entry(path, FOLDER) && !has_entry(path, "state.json")))
		return err_set(err, ERR_USAGE,
			       "--resume %.300s: %s; give the folder of a run or of a checkpoint, or auto", cfg->resume,
			       access(cfg->resume, F_OK) ? strerror(errno) : "has no checkpoint");
	if (config_given(cfg, FLAG_runs_dir) && cfg->origin[FLAG_runs_dir] != ORIGIN_ENVIRONMENT)
		return 0; /* DPTRACK_RUNS_DIR is a default: the path is more precise */
	up = has_entry(path, FOLDER) ? 2 : 4;
	slash = strrchr(path, '/');
	if (up == 4 && (!slash || slash - path < (long)strlen("/" FOLDER) ||
			strncmp(slash - strlen("/" FOLDER), "/" FOLDER, strlen("/" FOLDER)) != 0))
		return 0;
	for (int i = 0; i < up; i++) {
		slash = strrchr(path, '/');
		if (!slash || slash == path)
			return 0;
		*slash = '\0';
	}
	if (!holds_resumed_run(path, cfg))
		return 0;
	return config_put(cfg, FLAG_runs_dir, "--resume", path, err);
}

/* Keeps what the run has chosen without a flag: the order of samples, also where the set has moved (`table` before
 * --shuffle existed), and the precision of fine-tuning, also where the machine would choose another. */
static int settle_choices(struct run_config *cfg, struct err *err)
{
	const bool order = !config_given(cfg, FLAG_shuffle),
		   precision = cfg->decoder && cfg->origin[FLAG_precision] == ORIGIN_DEFAULT;
	struct checkpoint *c = order || precision ? open_newest_checkpoint(cfg) : NULL;
	const char *was = c ? checkpoint_config(c, "shuffle") : NULL;
	int rc = c && order ? config_put(cfg, FLAG_shuffle, "--resume", was && *was ? was : "table", err) : 0;

	was = c && precision ? checkpoint_config(c, "precision") : NULL;
	if (!rc && was && *was)
		rc = config_put(cfg, FLAG_precision, "--resume", was, err);
	checkpoint_close(c);
	return rc;
}

/* An evaluation follows the metadata of the weights, as with --init-from. */
static void settle_trained(struct run_config *cfg)
{
	struct checkpoint *c = open_newest_checkpoint(cfg);
	char file[4200];

	if (c && !checkpoint_model_path(file, sizeof(file), checkpoint_folder(c), NULL))
		cfg->trained.path = arena_strdup(cfg->arena, file);
	checkpoint_close(c);
}

int resume_settle(struct run_config *cfg, struct err *err)
{
	int rc = cfg->resume ? settle_runs_dir(cfg, err) : 0;

	if (rc || !cfg->resume)
		return rc;
	if (!cfg->test_only)
		return settle_choices(cfg, err);
	settle_trained(cfg);
	return 0;
}

/* ---- kernels ---- */

int resume_kernels(const struct rank *r, struct err *err)
{
	struct checkpoint *newest = NULL;
	struct buf text;
	int rc;

	if (!r->cfg->resume || !r->backend->choose)
		return 0;
	buf_init(&text, KERNELS_BYTES_MAX);
	if (rank_is_root(r))
		newest = open_newest_checkpoint(r->cfg);
	if (newest)
		checkpoint_kernels(newest, kernels_add, &text);
	checkpoint_close(newest);
	rc = kernels_share(r, &text, err);
	buf_done(&text);
	return rc;
}

/* ---- all ranks ---- */

struct resume_finding { /* no pointers: rank 0 sends it to the others */
	struct err err;
	struct resume resume;
	struct dataset_norm norm; /* images are normalised as before */
};

static void log_resume_point(const struct resume *r)
{
	if (r->loads)
		log_info("continuing after step %lld, from %s", (long long)r->at.step, r->path);
	else if (r->reopens)
		log_info("run %s has no usable checkpoint: it begins again", r->run_id);
}

static int take_checkpoint_norm(struct workload *workload, const struct run_config *cfg, const struct resume *r,
				struct err *err)
{
	char file[4200];

	if (checkpoint_model_path(file, sizeof(file), r->path, NULL))
		return 0;
	return initial_normalize(workload, cfg, file, err);
}

static int find_on_root(struct resume_search *s, struct workload *workload)
{
	const struct resume *r = s->r;
	int rc = 0;

	if (s->shared_status)
		rc = find_restarted_run(s);
	else if (s->cfg->resume)
		rc = strcmp(s->cfg->resume, "auto") ? find_named_checkpoint(s) : find_auto_run(s);
	if (!rc && r->loads)
		rc = take_checkpoint_norm(workload, s->cfg, r, s->err);
	else if (!rc && r->reopens && s->cfg->test_only)
		return err_set(s->err, ERR_USAGE, "--resume %.300s: run %s has no checkpoint to test", s->cfg->resume,
			       r->run_id);
	if (!rc && (s->shared_status || s->cfg->resume))
		log_resume_point(r);
	return rc;
}

/* Finds the checkpoint on rank 0 and sends the result to every rank. */
static int find_on_all_ranks(struct resume_finding *f, const struct rank *r, struct workload *workload,
			     const struct tensors *s, struct err *err)
{
	const struct shared_status *shared_status = r->context->shared_status;
	struct resume_search search = {
		r->cfg,	    workload, files_graph(s),
		&f->resume, &f->err,  r->context->attempt && shared_status->run_open ? shared_status : NULL
	};
	int rc, lock_fd;

	f->resume.lock_fd = -1;
	if (rank_is_root(r) && find_on_root(&search, workload) && !f->err.code)
		f->err.code = ERR_IO;
	lock_fd = f->resume.lock_fd;
	f->norm = workload->norm;
	rc = s->comm->ops->broadcast(s->comm, f, sizeof(*f), 0, err);
	f->resume.lock_fd = lock_fd;
	if (!rc && f->err.code)
		rc = err_set(err, f->err.code, "%s", f->err.text);
	if (!rc)
		workload->norm = f->norm;
	return rc;
}

static int give_tensor_part(void *user, const struct tensor *t, const struct weights_part_of *part, struct err *err)
{
	return tensors_give(user, t, (struct strategy_part){ part->begin, part->end }, part->data, err);
}

static int load_root(const struct tensors *s, const char *path, struct err *err)
{
	struct weights_access access = files_access(s);
	struct checkpoint *c;
	int rc = checkpoint_open(&c, path, err);

	if (rc)
		return rc;
	access.put = give_tensor_part;
	rc = checkpoint_load(c, files_graph(s), &access, err);
	checkpoint_close(c);
	return rc;
}

static int load_on_all_ranks(const struct tensors *s, const char *path, struct err *err)
{
	struct err ignored = ERR_INIT;
	int rc;

	if (s->comm->rank > 0)
		return tensors_follow(s, err);
	rc = load_root(s, path, err);
	if (rc)
		tensors_end(s, err, &ignored);
	return rc ? rc : tensors_end(s, NULL, err);
}

int resume_open(struct resume *ret, const struct rank *r, struct workload *workload, const struct tensors *s,
		struct err *err)
{
	struct resume_finding *f;
	int rc;

	memset(ret, 0, sizeof(*ret));
	ret->lock_fd = -1;
	if (!r->cfg->resume && !r->context->attempt)
		return 0;
	f = mem_zalloc(sizeof(*f));
	rc = find_on_all_ranks(f, r, workload, s, err);
	*ret = f->resume;
	free(f);
	return rc || !ret->loads ? rc : load_on_all_ranks(s, ret->path, err);
}

void resume_close(struct resume *r)
{
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	r->lock_fd = -1;
}
