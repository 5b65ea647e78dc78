/* SPDX-License-Identifier: Apache-2.0 */
/* auto_text.c: prints plans as flags, as a table, as JSON and as sentences. */
#include "tracker/base/json_print.h"
#include "trainer/tools/auto_text.h"

#include <string.h>

#include "trainer/tools/child.h"

#define SHOWN 12
#define EXPLAINED 24
#define MIB 1048576.0

static const char *const precision_names[] = { "fp32", "bf16", "fp16", "fp64" };
static const char *const recompute_names[] = { "none", "selective", "full" };
static const char *const offload_names[] = { "none", "optimizer", "optimizer,params" };

static void add_plan_flag(struct auto_flags *f, enum flag_id id, const char *name, const char *text)
{
	f->flag[f->n].id = id;
	f->flag[f->n].name = name;
	snprintf(f->flag[f->n++].value, sizeof(f->flag[0].value), "%s", text);
}

static void add_plan_number(struct auto_flags *f, enum flag_id id, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	add_plan_flag(f, id, name, text);
}

/* Adds the planned division into stages, by the time of blocks on that machine. */
static void add_partition(struct auto_flags *f, const struct search_plan *p)
{
	char text[sizeof(f->flag[0].value)];
	size_t used = 0;

	for (int s = 0; s < p->layout.stages && used < sizeof(text); s++) {
		int n = snprintf(text + used, sizeof(text) - used, "%s%d", s ? "," : "",
				 advise_stage_blocks(p->cost.blocks, p->cost.last_blocks, p->layout.stages, s));

		used += n > 0 ? (size_t)n : 0;
	}
	if (used < sizeof(text)) /* else the strategy divides by the work of blocks */
		add_plan_flag(f, FLAG_pp_partition, "--pp-partition", text);
}

void auto_flags_of(struct auto_flags *ret, const struct search_plan *p, int64_t global_batch)
{
	const struct advise_layout *l = &p->layout;

	ret->n = 0;
	if (l->nodes > 1)
		add_plan_number(ret, FLAG_nnodes, "--nnodes", l->nodes);
	add_plan_number(ret, FLAG_nproc_per_node, "--nproc-per-node", l->ranks / l->nodes);
	add_plan_flag(ret, FLAG_strategy, "--strategy", advise_table[p->strategy]->name);
	if (p->strategy == ADVISE_fsdp)
		add_plan_number(ret, FLAG_zero_stage, "--zero-stage", l->zero_stage);
	if (p->strategy == ADVISE_pdp) {
		add_plan_number(ret, FLAG_pp_stages, "--pp-stages", l->stages);
		add_plan_number(ret, FLAG_microbatches, "--microbatches", l->micros);
		add_partition(ret, p);
	}
	add_plan_number(ret, FLAG_global_batch_size, "--global-batch-size", global_batch);
	add_plan_number(ret, FLAG_batch_size, "--batch-size", p->batch_size);
	add_plan_flag(ret, FLAG_precision, "--precision", precision_names[p->precision]);
	if (p->offload >= OFFLOAD_OPTIMIZER)
		add_plan_flag(ret, FLAG_optim_offload, "--optim-offload", "");
	if (p->offload >= OFFLOAD_STATE)
		add_plan_flag(ret, FLAG_param_offload, "--param-offload", "");
	if (p->recompute)
		add_plan_flag(ret, FLAG_activation_checkpointing, "--activation-checkpointing",
			      recompute_names[p->recompute]);
}

static void add_flag_dashes(struct buf *out, const char *name)
{
	for (; *name; name++)
		buf_addc(out, *name == '_' ? '-' : *name);
}

static void add_spelled_flag(struct buf *out, const char *before, const char *name)
{
	buf_adds(out, "--");
	add_flag_dashes(out, before);
	add_flag_dashes(out, name);
}

void auto_flags_text(const struct auto_flags *flags, struct buf *out)
{
	for (int i = 0; i < flags->n; i++)
		buf_addf(out, "%s%s%s%s", i ? " " : "", flags->flag[i].name, *flags->flag[i].value ? " " : "",
			 flags->flag[i].value);
}

/* Adds a typed flag that does not belong to the choice. */
static void add_typed_flag(void *user, const struct config_item *item)
{
	const bool yes = !strcmp(item->value, "yes"), no = !strcmp(item->value, "no");
	struct buf *out = user;

	if (item->origin != ORIGIN_FLAG || item->traits & CONFIG_PLANNED)
		return;
	buf_addc(out, ' ');
	add_spelled_flag(out, no ? "no_" : "", item->name);
	if (!yes && !no)
		buf_addf(out, strpbrk(item->value, " ;*?$'\"&|()<>") ? " '%s'" : " %s", item->value);
}

static void add_plan_command(const struct auto_found *f, const struct run_config *cfg, const struct search_plan *p,
			     struct buf *out)
{
	struct auto_flags flags;

	auto_flags_of(&flags, p, f->global_batch);
	buf_adds(out, "dptrain");
	config_each(cfg, add_typed_flag, out);
	buf_addc(out, ' ');
	auto_flags_text(&flags, out);
}

/* "fsdp 3", "pdp 4" */
static void plan_name(const struct search_plan *p, char *ret, size_t n)
{
	const int part = p->strategy == ADVISE_fsdp ? p->layout.zero_stage
		: p->strategy == ADVISE_pdp ? p->layout.stages : 0;

	if (part)
		snprintf(ret, n, "%s %d", advise_table[p->strategy]->name, part);
	else
		snprintf(ret, n, "%s", advise_table[p->strategy]->name);
}

static int64_t micro_count(const struct search_plan *p)
{
	return p->layout.micros;
}

/* Returns the samples of one forward pass. */
static int64_t micro_samples(const struct search_plan *p)
{
	return p->strategy == ADVISE_pdp ? p->batch_size * p->layout.stages / p->layout.micros : p->batch_size;
}

static const char *plan_obstacle(const struct search_plan *p)
{
	return !p->fits ? "does not fit" : p->built ? "" : "not in this build";
}

static void add_plan_row(const struct auto_found *f, const struct search_plan *p, struct buf *out)
{
	char name[24];

	plan_name(p, name, sizeof(name));
	buf_addf(out, "%-7s %5d %8lld x %-4lld %-9s %-16s %-4s %9.1f %9.4g %10.5g %9.3g  %-13s %s\n", name,
		 p->layout.ranks, (long long)micro_samples(p), (long long)micro_count(p), recompute_names[p->recompute],
		 offload_names[p->offload], precision_names[p->precision], p->bytes / MIB, p->seconds,
		 p->samples_per_s * (double)f->per_sample, p->aco, p->limit, plan_obstacle(p));
}

static void add_plan_table(const struct auto_found *f, struct buf *out)
{
	buf_addf(out, "%-7s %5s %8s   %-4s %-9s %-16s %-4s %9s %9s %10s %9s  %s\n", "", "ranks", "samples", "times",
		 "recompute", "offload", "", "MiB", "s/step", f->per_sample > 1 ? "tokens/s" : "images/s", "ACO s",
		 "limit");
	for (int i = 0; i < f->search.n && i < SHOWN; i++)
		add_plan_row(f, &f->search.plans[i], out);
}

static void add_plan_parts(const struct search_plan *p, struct buf *out)
{
	const struct advise_cost *c = &p->cost;

	buf_addf(out, "time: forward %.4g s, backward %.4g, exposed communication %.4g (of %.4g), bubble %.4g, "
		 "optimizer %.4g, exposed copies %.4g\n", c->forward_s, c->backward_s, c->comm_exposed_s, c->comm_s,
		 c->bubble_s, c->optimizer_s, c->copy_exposed_s);
	buf_addf(out, "memory of a rank, %s:\n", p->whole ? "planned in full" : "by formula");
	for (int i = 0; i < PLAN_CATEGORY_COUNT; i++)
		if (c->bytes[i] > 0)
			buf_addf(out, "  %-12s %10.1f MiB\n", plan_category_name((enum plan_category)i),
				 c->bytes[i] / MIB);
	if (p->peak_bytes > p->bytes)
		buf_addf(out, "  %-12s %10.1f MiB of its process: code, libraries and their buffers\n", "process",
			 (p->peak_bytes - p->bytes) / MIB);
	if (c->host_bytes > 0)
		buf_addf(out, "  %-12s %10.1f MiB of host memory\n", "offloaded", c->host_bytes / MIB);
}

/* ---- why other plans lose ---- */

/* Adds why a plan loses against the best one. */
static void add_difference(const struct search_plan *best, const struct search_plan *p, struct buf *out)
{
	const struct advise_cost *a = &best->cost, *b = &p->cost;
	const struct {
		const char *name;
		double more;
	} parts[] = { { "compute", b->forward_s + b->backward_s - a->forward_s - a->backward_s },
		      { "exposed communication", b->comm_exposed_s - a->comm_exposed_s },
		      { "bubble", b->bubble_s - a->bubble_s },
		      { "optimizer", b->optimizer_s - a->optimizer_s },
		      { "exposed copies", b->copy_exposed_s - a->copy_exposed_s } };
	int most = 0;

	for (int i = 1; i < (int)(sizeof(parts) / sizeof(parts[0])); i++)
		most = parts[i].more > parts[most].more ? i : most;
	if (!p->fits)
		buf_addf(out, "does not fit: %.0f MiB a rank", p->peak_bytes / MIB);
	else if (p->seconds > best->seconds)
		buf_addf(out, "%.3gx as slow: %.3g s more of %s per step", p->seconds / best->seconds, parts[most].more,
			 parts[most].name);
	else
		buf_addf(out, "%.3gx as fast, but %s", best->seconds / p->seconds,
			 p->built ? "more memory or ranks than the goal allows" : "not in this build");
}

static void add_changed_setting(const struct search_plan *best, const struct search_plan *p, struct buf *out)
{
	char name[24], was[24];

	plan_name(p, name, sizeof(name));
	plan_name(best, was, sizeof(was));
	if (strcmp(name, was))
		buf_addf(out, "%s", name);
	else if (p->layout.ranks != best->layout.ranks)
		buf_addf(out, "%d ranks", p->layout.ranks);
	else if (micro_samples(p) != micro_samples(best) || micro_count(p) != micro_count(best))
		buf_addf(out, "%lld samples %lld times", (long long)micro_samples(p), (long long)micro_count(p));
	else if (p->recompute != best->recompute)
		buf_addf(out, "recompute %s", recompute_names[p->recompute]);
	else if (p->offload != best->offload)
		buf_addf(out, "offload %s", offload_names[p->offload]);
	else
		buf_addf(out, "%s", precision_names[p->precision]);
}

static void add_neighbor_plans(const struct auto_found *f, struct buf *out)
{
	const struct search_plan *best = &f->search.plans[0];
	int shown = 0;

	buf_adds(out, "alternatives to the best plan:\n");
	for (int i = 1; i < f->search.n && shown < EXPLAINED; i++) {
		if (search_distance(best, &f->search.plans[i]) != 1)
			continue;
		buf_adds(out, "  ");
		add_changed_setting(best, &f->search.plans[i], out);
		buf_adds(out, ": ");
		add_difference(best, &f->search.plans[i], out);
		buf_addc(out, '\n');
		shown++;
	}
}

/* ---- JSON ---- */

/* Converts a plan to JSON. */
static json_t *json_plan(const struct auto_found *f, const struct run_config *cfg, const struct search_plan *p)
{
	json_t *o = json_object();
	struct buf line;

	buf_init(&line, 1 << 16);
	add_plan_command(f, cfg, p, &line);
	json_object_set_new(o, "strategy", json_string(advise_table[p->strategy]->name));
	json_object_set_new(o, "zero_stage", json_integer(p->layout.zero_stage));
	json_object_set_new(o, "pp_stages", json_integer(p->layout.stages));
	json_object_set_new(o, "ranks", json_integer(p->layout.ranks));
	json_object_set_new(o, "nnodes", json_integer(p->layout.nodes));
	json_object_set_new(o, "batch_size", json_integer(p->batch_size));
	json_object_set_new(o, "microbatches", json_integer(p->layout.micros));
	json_object_set_new(o, "activation_checkpointing", json_string(recompute_names[p->recompute]));
	json_object_set_new(o, "offload", json_string(offload_names[p->offload]));
	json_object_set_new(o, "precision", json_string(precision_names[p->precision]));
	json_object_set_new(o, "fits", json_boolean(p->fits));
	json_object_set_new(o, "built", json_boolean(p->built));
	json_object_set_new(o, "planned_bytes", json_integer((json_int_t)p->bytes));
	json_object_set_new(o, "peak_bytes", json_integer((json_int_t)p->peak_bytes));
	json_object_set_new(o, "step_seconds", real_or_null(p->seconds));
	json_object_set_new(o, "samples_per_s", real_or_null(p->samples_per_s * (double)f->per_sample));
	json_object_set_new(o, "aco", real_or_null(p->aco));
	json_object_set_new(o, "limit", json_string(p->limit));
	json_object_set_new(o, "command", json_stringn(line.data ? line.data : "", line.len));
	buf_done(&line);
	return o;
}

static void add_plans_json(const struct auto_found *f, const struct run_config *cfg, struct buf *out)
{
	json_t *root = json_object(), *list = json_array();

	for (int i = 0; i < f->search.n; i++)
		json_array_append_new(list, json_plan(f, cfg, &f->search.plans[i]));
	json_object_set_new(root, "hardware", json_string(f->hardware.name));
	json_object_set_new(root, "plans", list);
	json_append(root, JSON_INDENT(1) | JSON_REAL_PRECISION(8), out);
}

void auto_text(const struct auto_found *f, const struct run_config *cfg, struct buf *out)
{
	const struct search_plan *best = &f->search.plans[0];

	if (cfg->json) {
		add_plans_json(f, cfg, out);
		return;
	}
	buf_addf(out, "%s, global batch %lld, on %s: %d plans\n", cfg->model, (long long)f->global_batch,
		 f->hardware.name, f->search.n);
	add_plan_table(f, out);
	add_plan_parts(best, out);
	if (cfg->explain)
		add_neighbor_plans(f, out);
	if (best->fits && best->built)
		add_plan_command(f, cfg, best, out);
	else
		buf_adds(out, best->fits ? "this build can start none of the plans that fit" : "no plan fits");
	buf_addc(out, '\n');
}
