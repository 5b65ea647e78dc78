/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c: commands that start no ranks: `dptrain plan`, `backends`, `tokenize`. */
#include "trainer/tools/subcommands.h"

#include <jansson.h>
#include <stdlib.h>

#include "tracker/base/terminal.h"
#include "trainer/advise/hardware.h"
#include "trainer/data/corpus/tokenize.h"
#include "trainer/program/memory.h"
#include "trainer/state/initial.h"

#define STAGES_BYTES_MAX 16384 /* of lines about a pipeline's stages */

static double planned_mib(const struct plan *p)
{
	return (double)memory_planned(p) / 1048576;
}

static void summarize_plan(const struct engine *e, struct buf *out)
{
	const struct plan *p = &e->prepared.plan;
	int64_t parameters = model_parameter_count(e->prepared.model);

	buf_addf(out, "model %s: %lld parameters\n", e->rank.cfg->model, (long long)parameters);
	buf_addf(out, "global batch %lld, %d rank%s, %lld on the largest\n", (long long)e->rank.cfg->global_batch_size,
		 e->rank.context->world, e->rank.context->world > 1 ? "s" : "", (long long)e->rank.cfg->batch_size);
	for (int i = 0; i < e->prepared.n_programs; i++)
		buf_addf(out, "program %s: %d nodes, %d tensors\n", e->prepared.program[i]->name,
			 e->prepared.program[i]->graph->n_nodes, e->prepared.program[i]->graph->n_tensors);
	buf_addf(out, "memory of a rank: %.1f MiB planned, lower bound %.1f MiB\n", planned_mib(p),
		 (double)p->lower_bound_bytes / 1048576);
	memory_table(p, out);
	if (p->offload_in_file)
		buf_addf(out, "  file         %10.1f MiB in %s\n", (double)p->slab_bytes[SPACE_OFFLOAD] / 1048576,
			 e->rank.cfg->offload_dir);
	comm_volume_table(&e->prepared, e->rank.cfg->grad_accum_steps, out);
}

/* Adds the same as one object: bytes by category. */
static int summarize_plan_json(const struct engine *e, struct buf *out, struct err *err)
{
	const struct plan *p = &e->prepared.plan;
	json_t *root = json_object(), *memory = json_object();
	char *text;

	for (int c = 0; c < PLAN_CATEGORY_COUNT; c++)
		if (p->category_bytes[c] || c <= PLAN_OPTIMIZER)
			json_object_set_new(memory, plan_category_name((enum plan_category)c),
					    json_integer((json_int_t)p->category_bytes[c]));
	json_object_set_new(root, "model", json_string(e->rank.cfg->model));
	json_object_set_new(root, "parameters", json_integer(model_parameter_count(e->prepared.model)));
	json_object_set_new(root, "global_batch_size", json_integer(e->rank.cfg->global_batch_size));
	json_object_set_new(root, "ranks", json_integer(e->rank.context->world));
	json_object_set_new(root, "planned_bytes", json_integer(memory_planned(p)));
	json_object_set_new(root, "lower_bound_bytes", json_integer((json_int_t)p->lower_bound_bytes));
	json_object_set_new(root, "memory", memory);
	text = json_dumps(root, JSON_INDENT(1));
	if (text)
		buf_addf(out, "%s\n", text);
	free(text);
	json_decref(root);
	return text ? 0 : err_nomem(err, "the plan");
}

/* Adds a line for every stage of a pipeline; sets context->rank to the stage that needs most, whose plan is *ret. */
static int describe_stages(struct engine **ret, const struct job *job, struct rank_context *context, struct buf *out,
			   struct err *err)
{
	const int stages = (int)config_stages(job->cfg);
	double most = 0;
	int neediest = 0;

	for (int s = 0; s < stages; s++) {
		const struct schedule *turns;
		struct engine *e;
		double mib;
		int rc;

		context->rank = s;
		rc = engine_open_plan(&e, job, context, err);
		if (rc)
			return rc;
		mib = planned_mib(&e->prepared.plan);
		turns = &e->prepared.program[0]->schedule;
		buf_addf(out, "stage %d of %d: %.1f MiB planned, keeps %d of %d micro-batches at once\n", s, stages,
			 mib, schedule_held(turns), turns->slots);
		engine_close(mib > most ? *ret : e);
		*ret = mib > most ? e : *ret;
		neediest = mib > most ? s : neediest;
		most = mib > most ? mib : most;
	}
	context->rank = neediest;
	return 0;
}

/* Compares the plan with the GPU's memory; memory of libraries and driver is unknown here. */
static void add_fit(const struct engine *e, const struct hardware *h, struct buf *out)
{
	const double mib = (double)memory_planned_on_device(&e->prepared.plan) / 1048576;

	buf_addf(out, "%s: %.1f MiB of a GPU's %.1f, %s\n", h->name, mib, h->memory_bytes / 1048576,
		 mib * 1048576 <= h->memory_bytes ? "fits" : "does not fit");
}

/* Describes the plan of the rank that needs most. h: the GPU to plan for; NULL: this machine. */
static int describe_whole(const struct job *job, struct rank_context *context, const struct hardware *h,
			  struct buf *out, struct err *err)
{
	struct buf stages;
	struct engine *e = NULL;
	int rc = 0;

	buf_init(&stages, STAGES_BYTES_MAX);
	if (config_stages(job->cfg) > 1)
		rc = describe_stages(&e, job, context, &stages, err);
	if (!rc && !e)
		rc = engine_open_plan(&e, job, context, err);
	if (!rc)
		workload_warn(e->workload.data);
	if (!rc && job->cfg->json)
		rc = summarize_plan_json(e, out, err);
	else if (!rc)
		summarize_plan(e, out);
	if (!rc && !job->cfg->json) {
		if (h)
			add_fit(e, h, out);
		buf_add(out, stages.data, stages.len);
	}
	if (e)
		engine_close(e);
	if (!rc && buf_failed(&stages))
		rc = err_nomem(err, "the stages' description");
	buf_done(&stages);
	return rc;
}

/* Adds the graph, the plan or the summary that --dump selects. */
static int describe_prepared(const struct job *job, const struct hardware *h, struct buf *out, struct err *err)
{
	struct shared_status shared_status = { .stop_signal = 0 };
	struct rank_context context = { .world = job->cfg->world,
					.local_world = job->cfg->world,
					.nodes = 1,
					.shm_fd = -1,
					.signal_fd = -1,
					.shared_status = &shared_status };
	struct plan_program list[PROGRAMS_MAX];
	struct engine *e;
	int rc;

	if (job->cfg->dump != CONFIG_DUMP_GRAPH && job->cfg->dump != CONFIG_DUMP_PLAN)
		return describe_whole(job, &context, h, out, err);
	rc = engine_open_plan(&e, job, &context, err);
	if (rc)
		return rc;
	for (int i = 0; i < e->prepared.n_programs; i++)
		list[i] = (struct plan_program){ e->prepared.program[i]->name, e->prepared.program[i]->graph,
						 &e->prepared.program[i]->schedule };
	if (job->cfg->dump == CONFIG_DUMP_GRAPH)
		for (int i = 0; i < e->prepared.n_programs; i++) {
			buf_addf(out, "program %s\n", list[i].name);
			graph_dump(list[i].graph, out);
		}
	else
		plan_dump(&e->prepared.plan, list, e->prepared.n_programs, out);
	engine_close(e);
	return buf_failed(out) ? err_nomem(err, "the description") : 0;
}

int describe_plan(const struct job *job, struct buf *out, struct err *err)
{
	struct job described = *job;
	struct hardware h;
	int rc;

	if (!job->cfg->hardware)
		return describe_prepared(job, NULL, out, err);
	if (job->cfg->backend != CONFIG_BACKEND_CUDA)
		return err_set(err, ERR_USAGE, "--hardware: needs --auto, or plan --backend cuda");
	rc = hardware_open(&h, job->cfg->hardware, err);
	if (rc)
		return rc;
	described.described = h.device;
	rc = h.device ? describe_prepared(&described, &h, out, err) :
			err_set(err, ERR_USAGE, "--hardware %.200s: has no device: write a file with dptrain backends "
				"--describe, on a machine with such a GPU", job->cfg->hardware);
	hardware_done(&h);
	return rc;
}

int describe_parameters(const struct job *job, int64_t *ret, struct err *err)
{
	struct graph *g = graph_new(false);
	struct workload s = { .data = NULL };
	int rc = g ? workload_open(&s, job->cfg, job->batch, NULL, err) : err_nomem(err, "graph");

	if (!rc)
		rc = initial_given(&s, job->cfg, err);
	if (!rc)
		rc = model_build(s.model, g, &s.config, 1, err);
	if (!rc)
		*ret = model_parameter_count(g);
	graph_free(g);
	workload_close(&s);
	return rc;
}

/* Adds a line on one backend: version, ops and precisions, or why it cannot run. */
static void describe_backend(const struct backend *b, struct buf *out)
{
	static const struct {
		const char *name;
		struct precision p;
	} kinds[] = { { "fp64", { DTYPE_F64, DTYPE_F64, NULL } },
		      { "fp32", { DTYPE_F32, DTYPE_F32, NULL } },
		      { "bf16", { DTYPE_BF16, DTYPE_F32, NULL } },
		      { "fp16", { DTYPE_F16, DTYPE_F32, NULL } } };
	char text[512] = "";
	int offered = 0;

	if (b->probe && b->probe(text, sizeof(text))) {
		buf_addf(out, "%-6s cannot run: %s\n", b->name, text);
		return;
	}
	text[0] = '\0';
	if (b->version)
		b->version(text, sizeof(text));
	for (int i = 0; i < OP_COUNT; i++)
		offered += kernel_supported(b->kernel[i]);
	buf_addf(out, "%-6s %s; %d of %d ops;", b->name, text[0] ? text : "ready", offered, OP_COUNT);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!b->takes || b->takes(&kinds[i].p))
			buf_addf(out, " %s", kinds[i].name);
	buf_addc(out, '\n');
}

void describe_backends(struct buf *out)
{
	static const char *const names[] = { "ref", "cpu", "cuda" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct backend_choice c;
		struct err err = ERR_INIT;

		if (backend_load(&c, names[i], &err))
			buf_addf(out, "%-6s %s\n", names[i], err.text);
		else
			describe_backend(c.backend, out);
	}
}

int describe_gpu(struct buf *out, struct err *err)
{
	struct backend_choice c;
	struct backend_device d;
	char version[512] = "";
	int rc = backend_load(&c, "cuda", err);

	if (!rc)
		rc = c.backend->describe(0, &d, err);
	if (rc)
		return rc;
	c.backend->version(version, sizeof(version));
	buf_addf(out,
		 "{\n \"name\": \"%s\",\n \"source\": \"dptrain backends --describe: %s\",\n"
		 " \"memory_bytes\": %lld,\n \"ranks_per_node\": %d,\n \"device\": %s\n}\n",
		 d.name, version, (long long)d.memory_bytes, c.backend->count(), d.properties);
	return 0;
}

static void add_token_counts(const struct run_config *cfg, const struct texts *texts, const struct tokenizer *tokenizer,
			     const struct tokenize_made *made, struct buf *out)
{
	buf_addf(out,
		 "%s: %lld training and %lld evaluation tokens of %lld document%s in %d file%s, vocabulary of %lld, "
		 "tokenizer %s\n",
		 cfg->out, (long long)made->tokens[SPLIT_TRAIN], (long long)made->tokens[SPLIT_VAL],
		 (long long)made->documents[SPLIT_TRAIN], made->documents[SPLIT_TRAIN] != 1 ? "s" : "", texts->n,
		 texts->n != 1 ? "s" : "", (long long)tokenizer_vocab(tokenizer), tokenizer_name(tokenizer));
}

/* Files and documents that are not in the tokens. */
static void add_left_texts(const struct run_config *cfg, const struct texts *texts, const struct tokenize_made *made,
			   struct buf *out)
{
	struct data_account all = texts->account;
	size_t from = out->len;

	data_account_add(&all, &made->left, "");
	if (!all.n_left)
		return;
	buf_addf(out, "%s: ", cfg->data_path);
	data_account_say_left(&all, DATA_ACCOUNT_REASONS, out);
	dataset_end_line(out, from);
}

static void report_reading(void *user, uint64_t bytes)
{
	terminal_progress_show(user, bytes >> 20);
}

int describe_tokenize(const struct run_config *cfg, struct buf *out, struct err *err)
{
	struct tokenizer *tokenizer = NULL;
	struct texts texts = { .n = 0 };
	struct tokenize_made made;
	struct terminal_progress reading;
	int rc = 0;

	if (!cfg->data_path || !cfg->out)
		return err_set(err, ERR_USAGE, "dptrain tokenize needs %s",
			       cfg->data_path ? "--out DIR" : "--data-path DIR");
	rc = texts_find(&texts, cfg->data_path,
			&(struct texts_opts){ .tables = true, .timeout_s = cfg->data_timeout }, err);
	if (!rc)
		rc = tokenizer_open(&tokenizer, cfg->tokenizer ? cfg->tokenizer : "bytes", err);
	terminal_progress_begin(&reading, "MiB of text read", 0);
	if (!rc)
		rc = tokenize(&(struct tokenize_opts){ .texts = &texts,
						       .tokenizer = tokenizer,
						       .out = cfg->out,
						       .val_share = cfg->val_split,
						       .field = cfg->text_field,
						       .data_timeout_s = cfg->data_timeout,
						       .progress = report_reading,
						       .user = &reading },
			      &made, err);
	terminal_progress_clear(&reading);
	if (!rc) {
		add_token_counts(cfg, &texts, tokenizer, &made, out);
		add_left_texts(cfg, &texts, &made, out);
	}
	tokenizer_close(tokenizer);
	texts_done(&texts);
	return rc;
}
