/* SPDX-License-Identifier: Apache-2.0 */
/* rank_env.c: one table row per kind of launcher. A launcher whose variables tell of a single rank is ignored, unless
 * it started this process itself. Slurm's compressed lists are expanded without its tools, which containers often
 * lack. */
#include "trainer/launch/rank_env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/hash.h"

/* ---- lists of Slurm ---- */

#define NAME_BYTES 256
#define DIGITS_MOST 9

int slurm_number(const char *text, int i)
{
	while (*text) {
		char *end;
		long v = strtol(text, &end, 10), times = 1;

		if (end == text || v < 0 || v > 65536)
			return -1;
		if (!strncmp(end, "(x", 2)) {
			times = strtol(end + 2, &end, 10);
			if (times < 1 || *end++ != ')')
				return -1;
		}
		if (i < times)
			return (int)v;
		i -= (int)times;
		if (*end && *end != ',')
			return -1;
		text = *end ? end + 1 : end;
	}
	return -1;
}

/* Returns the end of the name that begins here: a comma outside of brackets, or the end of the text. */
static const char *end_of_slurm_name(const char *at)
{
	for (int depth = 0; *at && (depth || *at != ','); at++)
		depth += (*at == '[') - (*at == ']');
	return at;
}

struct slurm_range { /* "01-04": from 1 on, 4 of them, two digits */
	long first, count;
	int digits;
	const char *end;
};

static bool read_slurm_range(const char *at, struct slurm_range *ret)
{
	char *end;
	long first = strtol(at, &end, 10), last = first;
	int digits = (int)(end - at);

	if (digits < 1 || digits > DIGITS_MOST || first < 0)
		return false;
	if (*end == '-') {
		const char *from = end + 1;

		last = strtol(from, &end, 10);
		if (end == from || end - from > DIGITS_MOST || last < first)
			return false;
	}
	*ret = (struct slurm_range){ first, last - first + 1, digits, end };
	return *end == ',' || *end == ']';
}

static bool expand_slurm_name(const char *name, int *i, char *ret, size_t n);

/* Expands the first bracket of the name, which opens at `open`, into each of its numbers in turn. */
static bool expand_slurm_bracket(const char *name, const char *open, int *i, char *ret, size_t n)
{
	const char *close = strchr(open, ']');
	struct slurm_range r = { .end = open };
	char one[NAME_BYTES];

	while (close && r.end < close) {
		if (!read_slurm_range(r.end + 1, &r))
			return false;
		for (long k = 0; k < r.count; k++) {
			int wrote = snprintf(one, sizeof(one), "%.*s%0*ld%s", (int)(open - name), name, r.digits,
					     r.first + k, close + 1);

			if (wrote < 0 || (size_t)wrote >= sizeof(one))
				return false;
			if (expand_slurm_name(one, i, ret, n))
				return true;
			if (*i < 0)
				return false;
		}
	}
	return false;
}

/* Subtracts the names of one entry from *i; true: name *i was found and is in ret. */
static bool expand_slurm_name(const char *name, int *i, char *ret, size_t n)
{
	const char *open = strchr(name, '[');

	if (open)
		return expand_slurm_bracket(name, open, i, ret, n);
	if ((*i)-- > 0)
		return false;
	if (!*name || strlen(name) >= n)
		return false;
	memcpy(ret, name, strlen(name) + 1);
	return true;
}

bool slurm_name(const char *list, int i, char *ret, size_t n)
{
	while (*list && i >= 0) {
		const char *end = end_of_slurm_name(list);
		char one[NAME_BYTES];

		if ((size_t)(end - list) >= sizeof(one))
			return false;
		memcpy(one, list, (size_t)(end - list));
		one[end - list] = '\0';
		if (expand_slurm_name(one, &i, ret, n))
			return true;
		list = *end ? end + 1 : end;
	}
	return false;
}

/* ---- variables of launchers ---- */

#define RANKS_MAX 65536
#define JOB_VARIABLES 4

struct launcher_env {
	const char *name;
	const char *rank, *world, *local_rank, *local_world;
	const char *step_world;		/* ranks of a part of the job, which overrides world; NULL: none */
	const char *job[JOB_VARIABLES]; /* variables that distinguish two jobs */
};

/* Each may be started by those after it. */
static const struct launcher_env launcher_envs[] = {
	{ "torchrun",
	  "RANK",
	  "WORLD_SIZE",
	  "LOCAL_RANK",
	  "LOCAL_WORLD_SIZE",
	  NULL,
	  { "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT" } },
	{ "Open MPI",
	  "OMPI_COMM_WORLD_RANK",
	  "OMPI_COMM_WORLD_SIZE",
	  "OMPI_COMM_WORLD_LOCAL_RANK",
	  "OMPI_COMM_WORLD_LOCAL_SIZE",
	  NULL,
	  { "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri", NULL } },
	{ "PMI",
	  "PMI_RANK",
	  "PMI_SIZE",
	  "MPI_LOCALRANKID",
	  "MPI_LOCALNRANKS",
	  NULL,
	  { "PMI_ID", "PMI_JOBID", "HYDI_CONTROL_FD", NULL } },
	{ "Slurm",
	  "SLURM_PROCID",
	  "SLURM_NTASKS",
	  "SLURM_LOCALID",
	  NULL,
	  "SLURM_STEP_NUM_TASKS",
	  { "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_CLUSTER_NAME", NULL } },
};

/* Returns 1: read; 0: not set; negative: not a number in range. */
static int read_env_number(const char *variable, int *ret, struct err *err)
{
	const char *text = variable ? getenv(variable) : NULL;
	char *end;
	long v;

	if (!text || !*text)
		return 0;
	errno = 0;
	v = strtol(text, &end, 10);
	if (errno || *end || v < 0 || v > RANKS_MAX)
		return err_set(err, ERR_USAGE, "environment variable %s=%.40s is not a number from 0 to %d", variable,
			       text, RANKS_MAX);
	*ret = (int)v;
	return 1;
}

/* A batch script of Slurm has the variables of its first task without being a task. */
static bool in_batch_script(const struct launcher_env *s)
{
	const char *kind = getenv("ENVIRONMENT");

	return !strcmp(s->name, "Slurm") && kind && !strcmp(kind, "BATCH") && !getenv("SLURM_STEP_ID");
}

static void hash_job_name(const struct launcher_env *s, struct rank_env *p)
{
	uint64_t hash = HASH_FNV_BEGIN;

	for (int i = 0; i < JOB_VARIABLES; i++) {
		const char *v = s->job[i] ? getenv(s->job[i]) : NULL;

		hash = hash_fnv(hash_fnv_text(hash, v ? v : ""), "\xff", 1);
	}
	snprintf(p->job, sizeof(p->job), "%u-%d-%016llx", (unsigned)getuid(), p->world, (unsigned long long)hash);
}

/* Reads the variables of one launcher into *ret, whose found is false when they are not set. */
static int read_launcher_env(const struct launcher_env *s, struct rank_env *ret, struct err *err)
{
	struct rank_env p = { .source = s->name, .group = -1 };
	const char *world;
	int n_local;
	int rc = read_env_number(s->rank, &p.rank, err);

	if (rc <= 0 || in_batch_script(s))
		return rc < 0 ? rc : 0;
	rc = read_env_number(s->step_world, &p.world, err);
	world = rc > 0 ? s->step_world : s->world;
	if (rc == 0)
		rc = read_env_number(s->world, &p.world, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(err, ERR_USAGE, "%s is set but %s is not; set both, or neither", s->rank, s->world);
	p.local_rank = p.rank;
	p.local_world = p.world;
	rc = n_local = read_env_number(s->local_rank, &p.local_rank, err);
	if (rc >= 0)
		rc = read_env_number(s->local_world, &p.local_world, err);
	if (rc < 0)
		return rc;
	p.complete = n_local > 0 && rc > 0;
	if (p.rank >= p.world || p.local_rank >= p.local_world)
		return err_set(err, ERR_USAGE, "%s=%d is not below %s=%d", s->rank, p.rank, world, p.world);
	snprintf(p.origin, sizeof(p.origin), "%s announces %d ranks (%s=%d, %s=%d)", s->name, p.world, s->rank, p.rank,
		 world, p.world);
	p.found = p.world > 1;
	hash_job_name(s, &p);
	*ret = p;
	return 0;
}

static const char *getenv_either(const char *a, const char *b)
{
	const char *v = getenv(a);

	return v && *v ? v : getenv(b);
}

/* Slurm gives the ranks of each machine as a list with one entry a machine; rank 0 is on the first machine of its node
 * list. The port is derived from the job id. When two jobs of a machine collide, listening fails and --master-port
 * helps. */
static int find_slurm_nodes(struct rank_env *p, struct err *err)
{
	const char *tasks = getenv_either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
	const char *list = getenv_either("SLURM_STEP_NODELIST", "SLURM_NODELIST");
	int node = 0, job = 0, rc = read_env_number("SLURM_STEP_NUM_NODES", &p->nodes, err);

	if (rc == 0)
		rc = read_env_number("SLURM_NNODES", &p->nodes, err);
	if (rc >= 0)
		rc = read_env_number("SLURM_NODEID", &node, err);
	if (rc < 0)
		return rc;
	if (p->nodes <= 1)
		return 0;
	p->local_world = tasks ? slurm_number(tasks, node) : -1;
	if (p->local_world < 1)
		return err_set(err, ERR_USAGE, "SLURM_STEP_TASKS_PER_NODE=%.100s has no number of tasks for node %d",
			       tasks ? tasks : "", node);
	if (p->local_rank >= p->local_world)
		return err_set(err, ERR_USAGE, "SLURM_LOCALID=%d is not below the %d tasks of node %d", p->local_rank,
			       p->local_world, node);
	if (list && !slurm_name(list, 0, p->master, sizeof(p->master)))
		return err_set(err, ERR_USAGE, "SLURM_STEP_NODELIST=%.200s is not a list of nodes", list);
	for (const char *c = getenv("SLURM_JOB_ID"); c && *c >= '0' && *c <= '9'; c++)
		job = (job * 10 + (*c - '0')) % 10000;
	p->port = 20000 + job;
	return 0;
}

/* torchrun's agents use MASTER_PORT themselves: the ranks use the next one. */
static int find_torch_nodes(struct rank_env *p, struct err *err)
{
	const char *master = getenv("MASTER_ADDR"), *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
	int rc;

	p->nodes = p->local_world < p->world ? (p->world + p->local_world - 1) / p->local_world : 1;
	if (p->nodes == 1)
		return 0;
	rc = read_env_number("GROUP_RANK", &p->group, err);
	if (rc < 0)
		return rc;
	snprintf(p->master, sizeof(p->master), "%s", master ? master : "");
	rc = read_env_number("MASTER_PORT", &p->port, err);
	p->port += rc > 0 && agent && !strcmp(agent, "True");
	return rc < 0 ? rc : 0;
}

static int find_node_count(struct rank_env *p, struct err *err)
{
	p->nodes = 1;
	if (!strcmp(p->source, "Slurm"))
		return find_slurm_nodes(p, err);
	if (!strcmp(p->source, "torchrun"))
		return find_torch_nodes(p, err);
	if (p->local_world < p->world)
		p->nodes = (p->world + p->local_world - 1) / p->local_world;
	return 0;
}

/* Returns true if this launcher started a job of one rank, inside of the job of another one. mpirun and torchrun say
 * so; RANK and its kin may also be left over in a shell. */
static bool started_alone(const struct rank_env *p)
{
	return p->complete && p->world == 1 && (strcmp(p->source, "torchrun") || getenv("TORCHELASTIC_RUN_ID"));
}

int rank_env_find(struct rank_env *ret, struct err *err)
{
	struct rank_env best = { .found = false, .source = "alone", .group = -1,
				 .world = 1, .local_world = 1, .nodes = 1 };

	for (size_t i = 0; i < sizeof(launcher_envs) / sizeof(launcher_envs[0]); i++) {
		struct rank_env p = { .found = false };
		int rc = read_launcher_env(&launcher_envs[i], &p, err);

		if (rc)
			return rc;
		if (best.complete || started_alone(&p))
			break;
		if (!p.found)
			continue;
		if (best.found && (best.rank != p.rank || best.world != p.world))
			return err_set(
				err, ERR_USAGE,
				"%s sets rank %d of %d, %s sets rank %d of %d: start dptrain with one of them only",
				best.source, best.rank, best.world, p.source, p.rank, p.world);
		if (!best.found)
			best = p;
	}
	if (best.found) {
		int rc = find_node_count(&best, err);

		if (rc)
			return rc;
	}
	*ret = best;
	return 0;
}
