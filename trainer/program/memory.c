/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: compares the plan with the machine. Other settings are planned in full, with kernels chosen by rule, so
 * that advice is known to fit. */
#include "trainer/program/memory.h"

#include <stdio.h>

#include "tracker/base/log.h"
#include "trainer/launch/machine.h"
#include "trainer/ops/copy/copy.h"
#include "trainer/program/planning.h"

#define MIB 1048576.0
#define FILE_BYTES (2 * COPY_PIECE_BYTES) /* resident part of an offload file: a piece being read, one being written */
#define ADVICE_BYTES 300
#define FILL 0.9			 /* part of the free memory that a micro-batch may be chosen for */
#define OWN_BYTES_MAX ((int64_t)1 << 30) /* device memory used by driver and libraries in addition to a plan */

size_t memory_offloaded(const struct plan *p)
{
	const size_t all = p->slab_bytes[SPACE_OFFLOAD];

	return p->offload_in_file && all > FILE_BYTES ? FILE_BYTES : all;
}

int64_t memory_planned_on_device(const struct plan *p)
{
	return (int64_t)(p->slab_bytes[SPACE_PRIVATE] + p->slab_bytes[SPACE_COMM]);
}

int64_t memory_planned(const struct plan *p)
{
	return memory_planned_on_device(p) +
	       (int64_t)(p->slab_bytes[SPACE_PINNED] + p->data_bytes + memory_offloaded(p));
}

/* Returns the bytes of all ranks on this machine, which share some memory; with a device, of one rank's device. */
static int64_t plan_bytes_needed(const struct plan *p, const struct rank *r)
{
	return r->backend->room ? memory_planned_on_device(p) : memory_planned(p) * r->context->local_world;
}

/* Returns the memory for all ranks of this machine. With a small limit of address space (ulimit -v) a process also maps
 * the other ranks' shared memory and a stack for each loader thread. These are not counted, so that no run that would
 * fit is refused. */
static int64_t available_on_host(const struct rank_context *context, const char **ret_whose)
{
	int64_t machine = machine_available_bytes(), own = machine_mappable_bytes();

	*ret_whose = "this machine has";
	if (own > INT64_MAX / context->local_world || (machine > 0 && machine <= own * context->local_world))
		return machine;
	*ret_whose = "the limit of its processes (ulimit -v) leaves";
	return own * context->local_world;
}

/* Returns the free bytes of the rank's device; 0: it has none or does not report it. */
static int64_t room_on_device(const struct rank *r)
{
	struct err ignored = ERR_INIT;
	int64_t room = 0;

	return !r->backend->room || r->backend->room(r->module, &room, &ignored) ? 0 : room;
}

static int64_t device_bytes(const struct rank *r)
{
	struct backend_device d = { .memory_bytes = 0 };
	struct err ignored = ERR_INIT;

	if (r->backend->describe && r->backend->device)
		r->backend->describe(r->backend->device(r->module), &d, &ignored);
	return d.memory_bytes;
}

struct shortage { /* describes by how much a plan does not fit */
	int64_t need_bytes, free_bytes;
	const char *whose; /* who has the free bytes, in words; of hosts */
};

/* Returns the bytes for what plan_bytes_needed counts; 0: unknown. */
static int64_t free_bytes(const struct rank *r, const char **ret_whose)
{
	*ret_whose = "";
	return r->backend->room ? room_on_device(r) : available_on_host(r->context, ret_whose);
}

/* Says how much memory is free where the plan would run. */
static void describe_room(char *text, size_t n, const struct rank *r, const struct shortage *s)
{
	const int64_t all = r->backend->room ? device_bytes(r) : 0;

	if (!r->backend->room)
		snprintf(text, n, "%s %.0f MiB free", s->whose, (double)s->free_bytes / MIB);
	else
		snprintf(text, n, "the GPU has %.0f of %.0f MiB free%s", (double)s->free_bytes / MIB, (double)all / MIB,
			 s->need_bytes + OWN_BYTES_MAX <= all ? ": other processes use its memory (see nvidia-smi)"
							      : "");
}

/* Returns the bytes that the run would need with other settings; -1: they cannot be planned. */
static int64_t bytes_needed_with(const struct rank *like, const struct workload *s, const struct run_config *cfg)
{
	struct rank r = { .cfg = cfg,
			  .context = like->context,
			  .backend = like->backend,
			  .by_rule = true,
			  .sizes_only = like->sizes_only };
	struct err ignored = ERR_INIT;
	struct prepared p;
	struct train_schedule c;
	int64_t bytes = -1;

	if (rank_open_module(&r, &ignored))
		return -1;
	if (!planning_make(&c, &p, &r, s, &ignored)) {
		bytes = plan_bytes_needed(&p.plan, &r);
		prepare_done(&p);
	}
	if (r.backend->close)
		r.backend->close(r.module);
	return bytes;
}

/* Halves the micro-batch of a step that fine-tuning chose until the plan fits; returns it. room: of the whole step. */
static int64_t fitting_micro_batch(const struct rank *r, const struct workload *s, struct shortage *room)
{
	struct run_config trial = *r->cfg;
	int64_t micro = trial.batch_size, need = bytes_needed_with(r, s, &trial);

	*room = (struct shortage){ .need_bytes = need };
	room->free_bytes = free_bytes(r, &room->whose);
	while (room->free_bytes > 0 && (double)need > FILL * (double)room->free_bytes && micro > 1) {
		micro = (micro + 1) / 2;
		config_split_batch(&trial, micro);
		need = bytes_needed_with(r, s, &trial);
	}
	return micro;
}

int memory_fit_batch(struct run_config *cfg, const struct rank *r, const struct workload *s, struct err *err)
{
	struct comm *c = rank_comm(r);
	struct run_config trial = *cfg;
	struct shortage room;
	int64_t micro = 0;
	char text[200];
	int rc = 0;

	if (!config_split_batch(&trial, cfg->batch_size))
		return 0;
	if (rank_is_root(r))
		micro = fitting_micro_batch(r, s, &room);
	if (c)
		rc = c->ops->broadcast(c, &micro, sizeof(micro), 0, err);
	if (rc || micro == cfg->batch_size)
		return rc;
	config_split_batch(cfg, micro);
	if (rank_is_root(r)) {
		describe_room(text, sizeof(text), r, &room);
		log_info("fine-tuning: batch_size %lld grad_accum_steps %lld: a step at once would need %.0f MiB, and "
			 "a tenth stays free; %s",
			 (long long)cfg->batch_size, (long long)cfg->grad_accum_steps, (double)room.need_bytes / MIB,
			 text);
	}
	return 0;
}

struct advice {
	const struct rank *rank;
	const struct workload *workload;
	int64_t limit;
	char text[ADVICE_BYTES];
	size_t used;
	int count;
};

static bool try_advice(struct advice *a, const struct run_config *cfg, const char *flags)
{
	int64_t bytes = bytes_needed_with(a->rank, a->workload, cfg);
	int n;

	if (bytes < 0 || bytes > a->limit)
		return false;
	n = snprintf(a->text + a->used, sizeof(a->text) - a->used, "%s%s (%.0f MiB)", a->count ? "; or " : "", flags,
		     (double)bytes / MIB);
	a->used += n < 0 ? 0 : (size_t)n;
	a->used = a->used < sizeof(a->text) ? a->used : sizeof(a->text) - 1;
	a->count++;
	return true;
}

/* Tries halves of the batch until one fits, with as many micro-batches as keep the step the same. */
static bool advise_smaller_batch(struct advice *a, const struct run_config *like, const char *more)
{
	int64_t part = (like->global_batch_size + like->world - 1) / like->world;

	for (int64_t b = (like->batch_size + 1) / 2, last = like->batch_size; b < last; last = b, b = (b + 1) / 2) {
		struct run_config cfg = *like;
		char flags[120];

		cfg.batch_size = b;
		cfg.grad_accum_steps = (part + b - 1) / b;
		snprintf(flags, sizeof(flags), "--batch-size %lld --grad-accum-steps %lld%s", (long long)b,
			 (long long)cfg.grad_accum_steps, more);
		if (cfg.global_batch_size % ((int64_t)cfg.world * b))
			snprintf(flags, sizeof(flags), "--batch-size %lld --global-batch-size %lld%s", (long long)b,
				 (long long)cfg.global_batch_size, more);
		if (try_advice(a, &cfg, flags))
			return true;
	}
	return false;
}

static void find_advice(struct advice *a)
{
	struct run_config cfg = *a->rank->cfg;
	const struct precision bf16 = { DTYPE_BF16, DTYPE_F32, NULL };

	if (cfg.activation_checkpointing != CONFIG_RECOMPUTE_FULL) {
		cfg.activation_checkpointing = CONFIG_RECOMPUTE_FULL;
		try_advice(a, &cfg, "--activation-checkpointing full");
	}
	cfg = *a->rank->cfg;
	advise_smaller_batch(a, &cfg, "");
	if (cfg.precision == CONFIG_PRECISION_FP32 && a->rank->backend->takes && a->rank->backend->takes(&bf16)) {
		cfg.precision = CONFIG_PRECISION_BF16;
		try_advice(a, &cfg, "--precision bf16");
	}
	cfg = *a->rank->cfg;
	cfg.activation_checkpointing = CONFIG_RECOMPUTE_FULL;
	if (!a->count)
		advise_smaller_batch(a, &cfg, " --activation-checkpointing full");
}

/* Refuses what needs more than `times` the free memory. */
static int check_bytes(int64_t bytes, int times, const struct rank *r, const struct workload *s, struct err *err)
{
	const char *whose;
	struct advice a = { .rank = r, .workload = s, .limit = free_bytes(r, &whose) };
	char room[200];

	if (a.limit <= 0 || bytes / times <= a.limit)
		return 0;
	find_advice(&a);
	describe_room(room, sizeof(room), r, &(struct shortage){ bytes, a.limit, whose });
	return err_set(err, ERR_USAGE, "the plan needs %.0f MiB%s, but %s; %s%s", (double)bytes / MIB,
		       !r->backend->room && r->context->local_world > 1 ? " for its ranks" : "", room,
		       a.count ? "what fits: " : "no batch size of this model fits; choose a smaller --model",
		       a.count ? a.text : "");
}

int memory_check(const struct plan *p, const struct rank *r, const struct workload *s, struct err *err)
{
	return check_bytes(plan_bytes_needed(p, r), 1, r, s, err);
}

int memory_check_first(const struct rank *r, const struct workload *s, struct err *err)
{
	struct rank like = *r;

	like.sizes_only = true;
	return r->by_rule || r->backend->room || !r->backend->choose
		       ? 0
		       : check_bytes(bytes_needed_with(&like, s, r->cfg), 2, r, s, err);
}

bool memory_is_large(const struct plan *p, const struct rank *r, char *text, size_t n)
{
	const char *whose = "";
	const int64_t limit = r->backend->room ? 0 : available_on_host(r->context, &whose);
	const int64_t bytes = plan_bytes_needed(p, r);
	char room[200];

	if (bytes <= limit / 2 || limit <= 0)
		return false;
	describe_room(room, sizeof(room), r, &(struct shortage){ bytes, limit, whose });
	snprintf(text, n, "the plan needs %.0f MiB%s; %s", (double)bytes / MIB,
		 r->context->local_world > 1 ? " for its ranks" : "", room);
	return true;
}

/* Returns the bytes with that batch size; -1: it cannot be planned or does not fit. */
static int64_t bytes_that_fit(const struct rank *r, const struct workload *s, int64_t size, int64_t limit)
{
	struct run_config cfg = *r->cfg;
	int64_t bytes;

	cfg.global_batch_size = cfg.global_batch_size / cfg.batch_size * size;
	cfg.batch_size = size;
	bytes = bytes_needed_with(r, s, &cfg);
	return limit > 0 && bytes > limit ? -1 : bytes;
}

int64_t memory_largest_batch(const struct rank *r, const struct workload *s, int64_t most, int64_t *ret_bytes)
{
	const char *whose;
	const int64_t limit = free_bytes(r, &whose);
	int64_t fits = 0, fails = most + 1;

	*ret_bytes = 0;
	for (int64_t size = 1; fits + 1 < fails; size = fits * 2 < fails ? fits * 2 : fits + (fails - fits) / 2) {
		int64_t bytes = bytes_that_fit(r, s, size, limit);

		if (bytes < 0) {
			fails = size;
		} else {
			fits = size;
			*ret_bytes = bytes;
		}
	}
	return fits;
}

int64_t memory_begin(void)
{
	return machine_held_bytes();
}

/* Slabs and their touched pages stay until the run ends. The process's peak is no substitute: it includes memory that
 * opening the data set used for a moment, and files mapped then. */
int64_t memory_used(int64_t before)
{
	int64_t now = machine_held_bytes();

	return now > before && before ? now - before : 0;
}

int64_t memory_on_device(const struct rank *r)
{
	const int64_t room = room_on_device(r);

	return room ? r->device_room - room : 0;
}

void memory_table(const struct plan *p, struct buf *out)
{
	for (int c = 0; c < PLAN_CATEGORY_COUNT; c++)
		if (p->category_bytes[c] || c <= PLAN_OPTIMIZER)
			buf_addf(out, "  %-12s %10.1f MiB\n", plan_category_name((enum plan_category)c),
				 (double)p->category_bytes[c] / MIB);
}
