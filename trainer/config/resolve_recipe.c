/* SPDX-License-Identifier: Apache-2.0 */
/* resolve_recipe.c: precision, data, length, optimiser, weights, checkpoints. */
#include <stdio.h>
#include <string.h>

#include "trainer/config/flags.h"
#include "trainer/optimizers/optimizers.h"

#define TUNING_LR 1e-5	   /* of adamw and adam with a decoder of --init-from; their --wd is then 0 */
#define LORA_LR 2e-4
#define TUNING_WARMUP 0.03 /* part of the run */
#define FIND_LR 10 /* the highest rate that `dptrain find lr` tries */

/* Averages in fp16 would not move: a step changes them by less than the type resolves. */
static int resolve_loss_scale(struct run_config *cfg, struct err *err)
{
	const bool f16 = cfg->precision == CONFIG_PRECISION_FP16;
	struct label l, o;

	if (cfg->opt_level == CONFIG_LEVEL_O3 && cfg->model_ema)
		return err_set(err, ERR_USAGE, "%s: needs parameters in fp32, O3 has none: use %s O2",
			       label_flag(cfg, FLAG_model_ema, &l), label_flag(cfg, FLAG_opt_level, &o));
	if (is_given(cfg, FLAG_loss_scale) && !f16)
		return err_set(err, ERR_USAGE, "%s: only --precision fp16 and --opt-level O1, O2, O3 scale the loss",
			       label_flag(cfg, FLAG_loss_scale, &l));
	if (!is_given(cfg, FLAG_loss_scale) && f16) {
		cfg->loss_scale = cfg->opt_level == CONFIG_LEVEL_O3 ? 1 : CONFIG_SCALE_DYNAMIC;
		mark_derived(cfg, FLAG_loss_scale);
	}
	return 0;
}

int resolve_precision(struct run_config *cfg, struct err *err)
{
	struct label l, o;
	bool f64;

	if (is_given(cfg, FLAG_opt_level) && is_given(cfg, FLAG_precision))
		return err_set(err, ERR_USAGE, "%s and %s contradict: give one of them",
			       label_flag(cfg, FLAG_opt_level, &o), label_flag(cfg, FLAG_precision, &l));
	if (is_given(cfg, FLAG_opt_level)) {
		cfg->precision = cfg->opt_level == CONFIG_LEVEL_O0 ? CONFIG_PRECISION_FP32 : CONFIG_PRECISION_FP16;
		cfg->origin[FLAG_precision] = cfg->origin[FLAG_opt_level];
	}
	if (!is_given(cfg, FLAG_precision) && cfg->backend == CONFIG_BACKEND_REF) {
		cfg->precision = CONFIG_PRECISION_FP64;
		mark_derived(cfg, FLAG_precision);
	}
	f64 = cfg->precision == CONFIG_PRECISION_FP64;
	if (f64 && cfg->backend == CONFIG_BACKEND_AUTO) {
		cfg->backend = CONFIG_BACKEND_REF;
		mark_derived(cfg, FLAG_backend);
	}
	if (f64 && cfg->backend == CONFIG_BACKEND_CPU)
		return err_set(err, ERR_USAGE, "%s: only the backends ref and cuda compute in fp64",
			       label_flag(cfg, FLAG_precision, &l));
	if (!f64 && cfg->backend == CONFIG_BACKEND_REF && !cfg->opt_level)
		return err_set(err, ERR_USAGE,
			       "%s: the backend ref computes in fp64 only, or emulates --opt-level O1 to O3",
			       label_flag(cfg, FLAG_precision, &l));
	return resolve_loss_scale(cfg, err);
}

static int refuse_changed_batch(const struct run_config *cfg, struct err *err)
{
	static const enum flag_id changes[] = { FLAG_augment, FLAG_auto_augment, FLAG_random_erase, FLAG_mixup_alpha,
						FLAG_cutmix_alpha };
	const bool used[] = { cfg->augment != 0, cfg->auto_augment != CONFIG_AUTO_AUGMENT_NONE, cfg->random_erase > 0,
			      cfg->mixup_alpha > 0, cfg->cutmix_alpha > 0 };
	struct label a, b;

	for (int i = 0; cfg->batch_from && i < (int)(sizeof(used) / sizeof(*used)); i++)
		if (used[i])
			return err_set(err, ERR_USAGE, "%s and %s contradict: the batch is used as it is",
				       label_flag(cfg, changes[i], &a), label_flag(cfg, FLAG_batch_from, &b));
	return 0;
}

int resolve_data(struct run_config *cfg, struct err *err)
{
	static const enum flag_id sources[] = { FLAG_data_path, FLAG_synthetic, FLAG_batch_from };
	const bool used[] = { cfg->data_path, cfg->synthetic, cfg->batch_from };
	struct label a, b;
	int first = -1;

	for (int i = 0; i < 3; i++) {
		if (!used[i])
			continue;
		if (first >= 0)
			return err_set(err, ERR_USAGE, "%s and %s contradict: give one source of data",
				       label_flag(cfg, sources[first], &a), label_flag(cfg, sources[i], &b));
		first = i;
	}
	if (first < 0 && (cfg->command == COMMAND_TRAIN || cfg->command == COMMAND_DOCTOR ||
			  cfg->command == COMMAND_FIND) && cfg->dump == CONFIG_DUMP_NONE)
		return err_set(err, ERR_USAGE, "--data-path DIR is required (or --synthetic, or --batch-from FILE)");
	if (cfg->test_only && cfg->synthetic)
		return err_set(err, ERR_USAGE, "%s and %s contradict: random inputs have no evaluation",
			       label_flag(cfg, FLAG_test_only, &a), label_flag(cfg, FLAG_synthetic, &b));
	if (cfg->train_crop_size && !cfg->data_path)
		return err_set(err, ERR_USAGE, "%s: needs --data-path DIR with images in files",
			       label_flag(cfg, FLAG_train_crop_size, &a));
	return refuse_changed_batch(cfg, err);
}

int resolve_length(struct run_config *cfg, struct err *err)
{
	bool endless = cfg->synthetic || cfg->batch_from;
	struct label l;

	if (endless && cfg->eval_steps)
		return err_set(err, ERR_USAGE, "%s: the data has no evaluation set",
			       label_flag(cfg, FLAG_eval_steps, &l));

	if (endless && is_given(cfg, FLAG_epochs))
		return err_set(err, ERR_USAGE, "%s: the data has no epochs; use --max-steps",
			       label_flag(cfg, FLAG_epochs, &l));
	if (endless && !cfg->max_steps && !cfg->test_only && cfg->command == COMMAND_TRAIN &&
	    cfg->dump == CONFIG_DUMP_NONE)
		return err_set(err, ERR_USAGE, "%s is endless: add --max-steps N",
			       label_flag(cfg, cfg->synthetic ? FLAG_synthetic : FLAG_batch_from, &l));
	if (endless || (cfg->max_steps && !is_given(cfg, FLAG_epochs))) {
		cfg->epochs = 0;
		mark_derived(cfg, FLAG_epochs);
	}
	return 0;
}

static const struct optimizer_defaults {
	const char *name;
	unsigned takes;
	double lr, wd, beta1, beta2, eps;
} optimizers[] = {
#define OPTIMIZER(name, takes, ...) { #name, takes, __VA_ARGS__ },
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
};

/* Defaults of fine-tuning: adamw, a short warm-up. */
int resolve_tuning(struct run_config *cfg, struct err *err)
{
	int rc = is_given(cfg, FLAG_opt) ? 0 : config_put(cfg, FLAG_opt, "--init-from", "adamw", err);

	if (!command_has(cfg, FLAG_warmup_steps) || config_finds(cfg, "lr") || is_given(cfg, FLAG_warmup_steps) ||
	    is_given(cfg, FLAG_lr_warmup_epochs) || (!cfg->max_steps && !cfg->data_path))
		return rc;
	cfg->warmup_steps = (int64_t)(TUNING_WARMUP * (double)cfg->max_steps + 0.5);
	cfg->lr_warmup_epochs = cfg->max_steps ? 0 : TUNING_WARMUP * (double)cfg->epochs;
	mark_derived(cfg, cfg->max_steps ? FLAG_warmup_steps : FLAG_lr_warmup_epochs);
	return rc;
}

static void set_optimizer_default(struct run_config *cfg, enum flag_id id, double *value, double fallback)
{
	if (config_given(cfg, id))
		return;
	*value = fallback;
	mark_derived(cfg, id);
}

static int report_other_optimizers(const struct run_config *cfg, enum flag_id id, unsigned what, struct err *err)
{
	char names[160] = "";
	struct label l;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]) && n < sizeof(names); i++)
		if (optimizers[i].takes & what)
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", optimizers[i].name);
	return err_set(err, ERR_USAGE, "%s: only --opt %s has %s", label_flag(cfg, id, &l), names,
		       what == NESTEROV ? "it" : "one");
}

/* Refuses flags that the optimiser does not have. */
static int check_opt_flags(const struct run_config *cfg, const struct optimizer_defaults *o, struct err *err)
{
	static const struct {
		unsigned what;
		enum flag_id id;
	} flags[] = {
		{ MOMENTUM, FLAG_momentum }, { MOMENTUM, FLAG_nesterov }, { BETAS, FLAG_beta1 },
		{ BETAS, FLAG_beta2 },	     { EPS, FLAG_eps },
	};
	struct label l;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (!(o->takes & flags[i].what) && is_given(cfg, flags[i].id))
			return err_set(err, ERR_USAGE,
				       "%s: --opt %s does not use it: omit it", label_flag(cfg, flags[i].id, &l),
				       o->name);
	if (is_given(cfg, FLAG_nesterov) && cfg->nesterov && !(o->takes & NESTEROV))
		return report_other_optimizers(cfg, FLAG_nesterov, NESTEROV, err);
	if (is_given(cfg, FLAG_trust_coef) && !(o->takes & TRUST))
		return report_other_optimizers(cfg, FLAG_trust_coef, TRUST, err);
	return 0;
}

int resolve_optimiser(struct run_config *cfg, struct err *err)
{
	bool falls = cfg->lr_scheduler != CONFIG_LR_CONSTANT && cfg->lr_scheduler != CONFIG_LR_STEP;
	const struct optimizer_defaults *d = &optimizers[cfg->opt];
	const bool tunes = cfg->decoder && !strncmp(d->name, "adam", 4);
	struct label l;
	int rc = check_opt_flags(cfg, d, err);

	if (rc)
		return rc;
	set_optimizer_default(cfg, FLAG_lr, &cfg->lr,
			      config_finds(cfg, "lr") ? FIND_LR
			      : tunes		      ? cfg->lora ? LORA_LR : TUNING_LR
						      : d->lr);
	set_optimizer_default(cfg, FLAG_wd, &cfg->wd, tunes ? 0 : d->wd);
	if (d->takes & BETAS) {
		set_optimizer_default(cfg, FLAG_beta1, &cfg->beta1, d->beta1);
		set_optimizer_default(cfg, FLAG_beta2, &cfg->beta2, d->beta2);
	}
	if (d->takes & EPS)
		set_optimizer_default(cfg, FLAG_eps, &cfg->eps, d->eps);
	if (cfg->nesterov && cfg->momentum == 0)
		return err_set(err, ERR_USAGE, "%s needs a --momentum above 0", label_flag(cfg, FLAG_nesterov, &l));
	if (cfg->warmup_steps > 0 && cfg->lr_warmup_epochs > 0)
		return err_set(err, ERR_USAGE, "%s: contradicts --lr-warmup-epochs %g: give one of them",
			       label_flag(cfg, FLAG_warmup_steps, &l), cfg->lr_warmup_epochs);
	if (command_has(cfg, FLAG_min_lr) && falls && cfg->min_lr > cfg->lr)
		return err_set(err, ERR_USAGE, "%s %g is above --lr %g", label_flag(cfg, FLAG_min_lr, &l), cfg->min_lr,
			       cfg->lr);
	return 0;
}

int resolve_weights(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (cfg->reset_head && cfg->test_only)
		return err_set(err, ERR_USAGE, "%s: --test-only would evaluate an untrained classifier: omit it",
			       label_flag(cfg, FLAG_reset_head, &l));
	if (cfg->reset_head && !cfg->init_from)
		return err_set(err, ERR_USAGE, "%s: needs weights for the other layers: add --init-from FILE",
			       label_flag(cfg, FLAG_reset_head, &l));
	return 0;
}

static int report_unknown_series(struct run_config *cfg, struct err *err)
{
	const char *keys[SERIES_COUNT], *near;
	struct label l;
	size_t n = 0;

	for (int i = 0; i < SERIES_COUNT; i++)
		if (series_get((enum series_id)i)->best != SERIES_BEST_NONE)
			keys[n++] = series_get((enum series_id)i)->key;
	near = config_nearest(cfg->save_best, keys, n);
	return err_set(err, ERR_USAGE, "%s '%.60s': cannot select checkpoints by this series; %s%s%s",
		       label_flag(cfg, FLAG_save_best, &l),
		       cfg->save_best, near ? "did you mean " : "use epoch/val_loss", near ? near : "",
		       near ? "?" : "");
}

int resolve_checkpoints(struct run_config *cfg, struct err *err)
{
	struct label l;

	if (cfg->save_best && !series_best(cfg->save_best))
		return report_unknown_series(cfg, err);
	if (cfg->resume && !strcmp(cfg->resume, "auto") && !cfg->run_name)
		return err_set(err, ERR_USAGE, "%s: needs the name of the run: add --run-name NAME",
			       label_flag(cfg, FLAG_resume, &l));
	return 0;
}
