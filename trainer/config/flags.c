/* SPDX-License-Identifier: Apache-2.0 */
/* flags.c: the tables of flags.def, brief.def and series.def; converts values of flags from text and back. */
#include "trainer/config/flags.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/arena.h"
#include "tracker/base/text.h"

#define BIT(c) (1u << (c))
#define FIND BIT(COMMAND_FIND)
#define TRAIN (BIT(COMMAND_TRAIN) | BIT(COMMAND_CONFIG) | BIT(COMMAND_PLAN) | DOCTOR | FIND)
#define DOCTOR BIT(COMMAND_DOCTOR)
#define BENCH BIT(COMMAND_BENCH)
#define TOKENIZE BIT(COMMAND_TOKENIZE)
#define SAMPLE BIT(COMMAND_SAMPLE)
#define SHARD BIT(COMMAND_SHARD)
#define INSPECT BIT(COMMAND_INSPECT)
#define MERGE BIT(COMMAND_MERGE)
#define EXPORT BIT(COMMAND_EXPORT)
#define SWEEP BIT(COMMAND_SWEEP)
#define PLAN BIT(COMMAND_PLAN)
#define PLANNER (BIT(COMMAND_TRAIN) | PLAN)
#define JSON (BIT(COMMAND_CONFIG) | BIT(COMMAND_BENCH) | DOCTOR | PLAN | FIND | INSPECT)
#define BACKENDS BIT(COMMAND_BACKENDS)
#define OPEN (-1)
#define SEGMENT CONFIG_SEGMENT
#define CHANGES CONFIG_CHANGES
#define LOCAL CONFIG_LOCAL
#define PLANNED CONFIG_PLANNED

/* Names from a registry as the form of a choice, with a bar in front that the macro skips. */
static const char strategies[] =
#define STRATEGY(name, ...) "|" #name
#include "trainer/strategies/strategies.def"
#undef STRATEGY
	;
#define STRATEGIES (strategies + 1)

static const char optimizers[] =
#define OPTIMIZER(name, ...) "|" #name
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
	;
#define OPTIMIZERS (optimizers + 1)

static const struct flag table[FLAG_COUNT] = {
#define FLAG(field, kind_, fallback_, least_, greatest_, form_, group_, commands_, traits_, help_)                    \
	[FLAG_##field] = { .name = #field, .kind = KIND_##kind_, .fallback = fallback_,                               \
			   .least = (least_) < 0 ? 0 : (least_), .greatest = (double)(greatest_), \
			   .above = (least_) < 0, \
			   .form = form_, .group = group_, .commands = commands_, .traits = traits_, .help = help_, \
			   .offset = offsetof(struct run_config, field) },
#include "trainer/config/flags.def"
#undef FLAG
};

static const struct flag_alias aliases[] = {
	{ "b", FLAG_batch_size, NULL },
	{ "j", FLAG_workers, NULL },
	{ "auto", FLAG_auto_plan, "yes" },
	{ "bf16", FLAG_precision, "bf16" },
	{ "fp16", FLAG_precision, "fp16" },
	{ "amp", FLAG_precision, "bf16" },
	{ "weight_decay", FLAG_wd, NULL },
	{ "logdir", FLAG_runs_dir, NULL },
	{ "lr_warmup_steps", FLAG_warmup_steps, NULL },
	{ "lr_min", FLAG_min_lr, NULL },
	{ "opt_eps", FLAG_eps, NULL },
	{ "clip_grad", FLAG_clip_grad_norm, NULL },
	{ "max_grad_norm", FLAG_clip_grad_norm, NULL },
};

/* Names of other programs for our flags (torchvision, timm, Hugging Face, Lightning, llm.c), for messages. */
static const struct {
	const char *name;
	enum flag_id id;
} foreign[] = {
	{ "arch", FLAG_model },
	{ "batch", FLAG_batch_size },
	{ "bs", FLAG_batch_size },
	{ "checkpoint", FLAG_resume },
	{ "checkpoint_dir", FLAG_runs_dir },
	{ "data", FLAG_data_path },
	{ "data_dir", FLAG_data_path },
	{ "dataset", FLAG_data_path },
	{ "eval_interval", FLAG_eval_steps },
	{ "eval_only", FLAG_test_only },
	{ "gpu", FLAG_backend },
	{ "gradient_accumulation_steps", FLAG_grad_accum_steps },
	{ "gradient_checkpointing", FLAG_activation_checkpointing },
	{ "img_size", FLAG_image_size },
	{ "learning_rate", FLAG_lr },
	{ "load", FLAG_init_from },
	{ "log_dir", FLAG_runs_dir },
	{ "max_iters", FLAG_max_steps },
	{ "max_length", FLAG_seq_len },
	{ "mixed_precision", FLAG_precision },
	{ "name", FLAG_run_name },
	{ "nproc", FLAG_nproc_per_node },
	{ "num_epochs", FLAG_epochs },
	{ "num_train_epochs", FLAG_epochs },
	{ "num_workers", FLAG_workers },
	{ "optimizer", FLAG_opt },
	{ "output_dir", FLAG_runs_dir },
	{ "pretrained", FLAG_init_from },
	{ "project", FLAG_experiment },
	{ "ranks", FLAG_nproc_per_node },
	{ "resume_from", FLAG_resume },
	{ "resume_from_checkpoint", FLAG_resume },
	{ "save_every", FLAG_save_steps },
	{ "save_interval", FLAG_save_steps },
	{ "sched", FLAG_lr_scheduler },
	{ "use_deterministic_algorithms", FLAG_deterministic },
	{ "weights", FLAG_init_from },
	{ "world_size", FLAG_nproc_per_node },
};

static const struct flag_env envs[] = {
	{ "OMP_NUM_THREADS", FLAG_threads },
	{ "DPTRACK_URL", FLAG_report_to },
	{ "DPTRACK_RUNS_DIR", FLAG_runs_dir },
};

static const struct flag_brief briefs[] = {
#define BRIEF(field, commands_, text_) { FLAG_##field, commands_, text_ },
#include "trainer/config/brief.def"
#undef BRIEF
};

const struct flag_brief *flag_briefs(size_t *ret_n)
{
	*ret_n = sizeof(briefs) / sizeof(briefs[0]);
	return briefs;
}

const struct flag *flag_get(enum flag_id id)
{
	return &table[id];
}

const char *flag_word(const struct flag *f)
{
	const char *bar = f->kind == KIND_INT ? strchr(f->form, '|') : NULL;

	return bar ? bar + 1 : NULL;
}

bool flag_known_to(enum flag_id id, enum config_command c)
{
	return table[id].commands & BIT(c);
}

const struct flag_alias *flag_aliases(size_t *ret_n)
{
	*ret_n = sizeof(aliases) / sizeof(aliases[0]);
	return aliases;
}

const struct flag_env *flag_envs(size_t *ret_n)
{
	*ret_n = sizeof(envs) / sizeof(envs[0]);
	return envs;
}

static bool match_flag_name(const char *typed, const char *name)
{
	for (; *typed && *name; typed++, name++)
		if (*typed != *name && !(*typed == '-' && *name == '_'))
			return false;
	return !*typed && !*name;
}

bool flag_find(const char *name, enum flag_id *ret_id, const struct flag_alias **ret_alias)
{
	for (int i = 0; i < FLAG_COUNT; i++)
		if (match_flag_name(name, table[i].name)) {
			*ret_id = (enum flag_id)i;
			*ret_alias = NULL;
			return true;
		}
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (match_flag_name(name, aliases[i].name)) {
			*ret_id = aliases[i].id;
			*ret_alias = &aliases[i];
			return true;
		}
	return false;
}

bool flag_foreign(const char *name, enum flag_id *ret)
{
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (match_flag_name(name, foreign[i].name)) {
			*ret = foreign[i].id;
			return true;
		}
	return false;
}

static void *flag_storage(const struct run_config *cfg, const struct flag *f)
{
	return (char *)cfg + f->offset;
}

static int parse_int(const struct flag *f, const char *text, int64_t *ret)
{
	const char *word = flag_word(f);
	char *end;
	long long v;

	if (word && !strcmp(text, word))
		return *ret = -1, 0;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || *end || strchr(" \t\n", *text) || errno == ERANGE)
		return -1;
	if ((double)v < f->least || (double)v > f->greatest)
		return -1;
	*ret = v;
	return 0;
}

static int parse_real(const struct flag *f, const char *text, double *ret)
{
	char *end;
	double v;

	v = strtod(text, &end);
	if (end == text || *end || strpbrk(text, "xXnN \t\n") || !isfinite(v))
		return -1;
	if (v < f->least || v > f->greatest || (f->above && v == f->least))
		return -1;
	*ret = v;
	return 0;
}

static int report_bad_number(const struct flag *f, const char *label, const char *text, struct err *err)
{
	const char *word = flag_word(f);
	const bool whole = f->kind == KIND_INT;
	char least[40], greatest[40];

	snprintf(least, sizeof(least), whole ? "%.0f" : "%.15g", f->least);
	snprintf(greatest, sizeof(greatest), whole ? "%.0f" : "%.15g", f->greatest);
	return err_set(err, ERR_USAGE, "%s '%.60s': expected %s%sa %snumber %s %s%s%s", label, text, word ? word : "",
		       word ? " or " : "", whole ? "whole " : "", f->above ? "above" : "from", least,
		       f->above ? " and at most " : " to ", greatest);
}

static int parse_bool(const char *text, bool *ret)
{
	static const char *const yes[] = { "yes", "true", "on", "1" }, *const no[] = { "no", "false", "off", "0" };

	for (size_t i = 0; i < 4; i++)
		if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
			*ret = !strcmp(text, yes[i]);
			return 0;
		}
	return -1;
}

/* Returns the index of text[0..n) among the choices of form, or -1. */
static int find_choice(const char *form, const char *text, size_t n)
{
	for (int i = 0; *form; i++) {
		size_t len = strcspn(form, "|");

		if (len == n && !memcmp(form, text, n))
			return i;
		form += len + (form[len] == '|');
	}
	return -1;
}

static int parse_set(const char *form, const char *text, unsigned *ret)
{
	unsigned bits = 0;

	if (!strcmp(text, "none"))
		return *ret = 0, 0;
	for (;;) {
		size_t len = strcspn(text, ",");
		int i = find_choice(form, text, len);

		if (i < 0 || bits & BIT(i))
			return -1;
		bits |= BIT(i);
		if (!text[len])
			break;
		text += len + 1;
	}
	*ret = bits;
	return 0;
}

static int report_bad_choice(const struct flag *f, const char *label, const char *text, struct err *err)
{
	char list[160];
	size_t n = strlen(f->form);

	if (f->kind == KIND_SET)
		return err_set(err, ERR_USAGE,
			       "%s '%.60s': expected none or a comma-separated list of %s, each at most once", label,
			       text, f->form);
	if (n >= sizeof(list))
		n = sizeof(list) - 1;
	for (size_t i = 0; i <= n; i++)
		list[i] = i == n ? 0 : f->form[i] == '|' ? ' ' : f->form[i];
	return err_set(err, ERR_USAGE, "%s '%.60s': expected one of: %s", label, text, list);
}

static int store_text(struct run_config *cfg, const struct flag *f, const char *label, const char *text,
		      struct err *err)
{
	char *copy;

	if (!*text)
		return err_set(err, ERR_USAGE, "%s: the value is empty", label);
	if (strlen(text) > FLAG_TEXT_MAX)
		return err_set(err, ERR_USAGE, "%s: longer than %d bytes", label, FLAG_TEXT_MAX);
	copy = arena_strdup(cfg->arena, text);
	*(const char **)flag_storage(cfg, f) = copy;
	return 0;
}

int flag_store(struct run_config *cfg, enum flag_id id, const char *label, const char *text, struct err *err)
{
	const struct flag *f = &table[id];
	void *at = flag_storage(cfg, f);
	int i;

	switch (f->kind) {
	case KIND_INT:
		return parse_int(f, text, at) ? report_bad_number(f, label, text, err) : 0;
	case KIND_REAL:
		return parse_real(f, text, at) ? report_bad_number(f, label, text, err) : 0;
	case KIND_BOOL:
		return parse_bool(text, at) ? err_set(err, ERR_USAGE, "%s '%.60s': expected yes or no", label, text)
					    : 0;
	case KIND_TEXT:
		return store_text(cfg, f, label, text, err);
	case KIND_CHOICE:
		i = find_choice(f->form, text, strlen(text));
		if (i < 0)
			return report_bad_choice(f, label, text, err);
		*(int *)at = i;
		return 0;
	case KIND_SET:
		return parse_set(f->form, text, at) ? report_bad_choice(f, label, text, err) : 0;
	}
	return err_set(err, ERR_UNSUPPORTED, "%s: unknown kind of flag", label);
}

static void add_choice(struct buf *out, const char *form, int index)
{
	while (index-- > 0)
		form += strcspn(form, "|") + 1;
	buf_add(out, form, strcspn(form, "|"));
}

static void add_set(struct buf *out, const char *form, unsigned bits)
{
	if (!bits)
		buf_adds(out, "none");
	for (int i = 0, first = 1; bits >> i; i++)
		if (bits & BIT(i)) {
			buf_adds(out, first ? "" : ",");
			add_choice(out, form, i);
			first = 0;
		}
}

void flag_text(const struct run_config *cfg, enum flag_id id, struct buf *out)
{
	const struct flag *f = &table[id];
	const void *at = flag_storage(cfg, f);
	char text[TEXT_DOUBLE_BYTES];

	if (!*f->fallback && cfg->origin[id] == ORIGIN_DEFAULT)
		return;
	switch (f->kind) {
	case KIND_INT: /* -1 may be a word; other values below the range mean "no limit" and print nothing */
		if (*(const int64_t *)at == -1 && flag_word(f))
			buf_adds(out, flag_word(f));
		else if ((double)*(const int64_t *)at >= f->least)
			buf_addf(out, "%lld", (long long)*(const int64_t *)at);
		return;
	case KIND_REAL:
		buf_adds(out, text_double(text, *(const double *)at, 6));
		return;
	case KIND_BOOL:
		buf_adds(out, *(const bool *)at ? "yes" : "no");
		return;
	case KIND_TEXT:
		buf_adds(out, *(const char *const *)at ? *(const char *const *)at : "");
		return;
	case KIND_CHOICE:
		add_choice(out, f->form, *(const int *)at);
		return;
	case KIND_SET:
		add_set(out, f->form, *(const unsigned *)at);
		return;
	}
}

const char *flag_label(const struct run_config *cfg, enum flag_id id, char *ret, size_t n)
{
	const char *name = table[id].name;

	if (cfg->origin[id] == ORIGIN_FILE) {
		snprintf(ret, n, "%s: %s", cfg->config ? cfg->config : "config file", name);
		return ret;
	}
	if (cfg->origin[id] == ORIGIN_ENVIRONMENT)
		for (size_t i = 0; i < sizeof(envs) / sizeof(envs[0]); i++)
			if (envs[i].id == id)
				name = envs[i].variable;
	snprintf(ret, n, "%s%s", cfg->origin[id] == ORIGIN_ENVIRONMENT ? "" : "--", name);
	if (cfg->origin[id] != ORIGIN_ENVIRONMENT)
		for (char *p = ret; *p; p++)
			if (*p == '_')
				*p = '-';
	return ret;
}

/* ---- series ---- */

static const struct series series_table[SERIES_COUNT] = {
#define SERIES(group, name, of_, at_, best_, help_)                                                      \
	[SERIES_##group##_##name] = { .key = #group "/" #name, .of = SERIES_OF_##of_, .at = SERIES_AT_##at_, \
				      .best = SERIES_BEST_##best_, .help = help_ },
#include "trainer/config/series.def"
#undef SERIES
};

const struct series *series_get(enum series_id id)
{
	return &series_table[id];
}

const struct series *series_best(const char *key)
{
	for (int i = 0; i < SERIES_COUNT; i++)
		if (series_table[i].best != SERIES_BEST_NONE && !strcmp(series_table[i].key, key))
			return &series_table[i];
	return NULL;
}
