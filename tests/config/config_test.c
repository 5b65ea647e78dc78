/* SPDX-License-Identifier: Apache-2.0 */
/* config_test.c: from command lines, environment and files to a resolved configuration; refusals and their messages. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "tracker/base/utf8.h"
#include "trainer/config/config.h"
#include "trainer/config/flags.h"
#include "trainer/strategies/strategy.h"

#define WORDS_MAX 40

/* Splits a command line at spaces and resolves it for `world` ranks. */
static int resolve(struct run_config **ret, const char *line, int world, struct err *err)
{
	char text[1000], *words[WORDS_MAX] = { "dptrain" }, *at = text;
	struct run_config *cfg = NULL;
	int n = 1, rc;

	snprintf(text, sizeof(text), "%s", line);
	while (*at && n < WORDS_MAX) {
		words[n++] = at;
		at += strcspn(at, " ");
		if (*at)
			*at++ = 0;
	}
	rc = config_parse(&cfg, n, words, err);
	if (!rc && !cfg->help)
		rc = config_resolve(cfg, &(struct config_world){ .world = world }, err);
	if (rc)
		config_free(cfg);
	else
		*ret = cfg;
	return rc;
}

static struct run_config *good(const char *line, int world)
{
	struct run_config *cfg = NULL;
	struct err err = ERR_INIT;

	if (resolve(&cfg, line, world, &err))
		fail_msg("%s: %s", line, err.text);
	return cfg;
}

static void refused(const char *line, int world, const char *words)
{
	struct run_config *cfg = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(resolve(&cfg, line, world, &err), ERR_USAGE);
	if (!strstr(err.text, words) || strchr(err.text, '\n'))
		fail_msg("%s\n  message: %s\n  expected: %s", line, err.text, words);
}

static void spellings(void **state)
{
	struct run_config *c = good("--data_path /d -b 12 -j3 --nproc-per-node=2 --sync-bn --no-deterministic --amp "
				    "--weight-decay 0.5 --lr-min 0.01 --augment flip,crop --nesterov=true --lr=.3", 2);

	(void)state;
	assert_int_equal(c->command, COMMAND_TRAIN);
	assert_string_equal(c->data_path, "/d");
	assert_int_equal(c->batch_size, 12);
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->nproc_per_node, 2);
	assert_true(c->sync_bn && !c->deterministic && c->nesterov);
	assert_int_equal(c->precision, CONFIG_PRECISION_BF16);
	assert_true(c->wd == 0.5 && c->min_lr == 0.01 && c->lr == 0.3);
	assert_int_equal(c->augment, CONFIG_AUGMENT_CROP | CONFIG_AUGMENT_FLIP);
	assert_int_equal(c->origin[FLAG_sync_bn], ORIGIN_FLAG);
	assert_int_equal(c->origin[FLAG_epochs], ORIGIN_DEFAULT);
	assert_int_equal(c->origin[FLAG_strategy], ORIGIN_DERIVED);
	assert_int_equal(c->strategy, STRATEGY_ddp);
	config_free(c);
	c = good("--data-path d --lr 1 --lr 2 --bf16 --precision bf16", 1); /* the last value wins */
	config_free(c);
	c = good("--synthetic --max-steps 1 -j auto", 1);
	assert_int_equal(c->workers, -1);
	assert_int_equal(c->origin[FLAG_workers], ORIGIN_FLAG);
	config_free(c);
	c = good("--synthetic --max-steps 1", 1);
	assert_int_equal(c->workers, -1);
	config_free(c);
}

static void every_default_and_choice(void **state)
{
	struct run_config *c = good("config", 1);

	(void)state;
	for (int i = 0; i < FLAG_COUNT; i++) {
		const struct flag *f = flag_get((enum flag_id)i);
		const char *form = f->form;

		assert_non_null(f->help);
		for (int k = 0; f->kind == KIND_CHOICE && *form; k++) {
			char word[40],
				*end = word + snprintf(word, sizeof(word), "%.*s", (int)strcspn(form, "|"), form);

			(void)end;
			assert_int_equal(flag_store(c, (enum flag_id)i, "x", word, NULL), 0);
			assert_int_equal(*(int *)((char *)c + f->offset), k);
			form += strcspn(form, "|");
			form += *form == '|';
		}
	}
	config_free(c);
	/* Samples of the enums of config.h, which are in the order of the choices. */
	c = good("config --act gelu --lr-scheduler constant --backend cuda --precision bf16 --strategy ddp --dump "
		 "summary", 2);
	assert_int_equal(c->act, CONFIG_ACT_GELU);
	assert_int_equal(c->lr_scheduler, CONFIG_LR_CONSTANT);
	assert_int_equal(c->backend, CONFIG_BACKEND_CUDA);
	assert_int_equal(c->precision, CONFIG_PRECISION_BF16);
	assert_int_equal(c->strategy, STRATEGY_ddp);
	assert_int_equal(c->dump, CONFIG_DUMP_SUMMARY);
	config_free(c);
}

static void bad_settings_are_refused(void **state)
{
	static const struct {
		const char *line, *words;
		int world;
	} cases[] = {
		{ "--lrr 1", "did you mean --lr?", 1 },
		{ "--globalbatch-size 3", "did you mean --global-batch-size?", 1 },
		{ "--quux 3", "unknown flag --quux", 1 },
		{ "--resume auto --synthetic --max-steps 3", "--resume: needs the name of the run: add --run-name", 1 },
		{ "--save-best epoch/top2 --synthetic --max-steps 3", "did you mean epoch/top1?", 1 },
		{ "-x 3", "unknown flag -x", 1 },
		{ "--no-lr", "unknown flag --no-lr", 1 },
		{ "--no-bf16", "unknown flag --no-bf16", 1 },
		{ "--b 3", "unknown flag --b", 1 },
		{ "trian", "did you mean train?", 1 },
		{ "tokenise", "unknown command 'tokenise'", 1 },
		{ "--data-path d extra", "unexpected argument 'extra'", 1 },
		{ "--data-path d -- x", "unexpected argument '--'", 1 },
		{ "--model", "--model needs a value", 1 },
		{ "--model --lr 1", "--model needs a value", 1 },
		{ "--model=", "--model: the value is empty", 1 },
		{ "--bf16=yes", "--bf16 takes no value", 1 },
		{ "--no-sync-bn=yes", "takes no value", 1 },
		{ "--sync-bn=maybe", "expected yes or no", 1 },
		{ "-b 0", "expected a whole number from 1 to 1048576", 1 },
		{ "-b 1.5", "expected a whole number", 1 },
		{ "-b 99999999999999999999", "expected a whole number", 1 },
		{ "--lr nan", "expected a number from 0", 1 },
		{ "--lr inf", "expected a number from 0", 1 },
		{ "--lr 0x10", "expected a number from 0", 1 },
		{ "--lr 1e", "expected a number from 0", 1 },
		{ "--lr -1", "expected a number from 0", 1 },
		{ "--bucket-cap-mb 0", "expected a number above 0", 1 },
		{ "--precision fp8", "expected one of: fp32 bf16 fp16 fp64", 1 },
		{ "--augment crop,crop", "each at most once", 1 },
		{ "--augment turn", "comma-separated list of crop|flip|rrc", 1 },
		{ "--steps 3", "--steps belongs to `dptrain bench`", 1 },
		{ "bench --save-steps 3", "not to `dptrain bench`", 1 },
		{ "bench --epochs 3", "--epochs: needs --loader", 1 },
		{ "bench --data-path d", "--data-path: needs --loader", 1 },
		{ "--bf16 --precision fp32", "--precision contradicts --bf16", 1 },
		{ "--precision fp32 --amp", "--amp contradicts --precision fp32", 1 },
		{ "--data-path d --synthetic", "--data-path and --synthetic contradict", 1 },
		{ "--synthetic --batch-from f --max-steps 1", "--synthetic and --batch-from contradict", 1 },
		{ "", "--data-path DIR is required", 1 },
		{ "--synthetic", "is endless: add --max-steps N", 1 },
		{ "--synthetic --max-steps 3 --epochs 1", "the data has no epochs", 1 },
		{ "--synthetic --test-only", "random inputs have no evaluation", 1 },
		{ "--batch-from f --max-steps 3 --augment flip", "used as it is", 1 },
		{ "--data-path d --precision fp64 --backend cpu", "only the backends ref and cuda compute in fp64", 1 },
		{ "--data-path d --precision bf16 --backend ref", "computes in fp64 only", 1 },
		{ "--data-path d --strategy single", "needs one rank, but there are 3", 3 },
		{ "--data-path d -b 3 --grad-accum-steps 2 --global-batch-size 13",
		  "contradicts batch size 3 x 2 passes", 2 },
		{ "--data-path d --grad-accum-steps 3 --global-batch-size 10", "use 2 passes of 2", 3 },
		{ "--data-path d -b 1048576 --grad-accum-steps 65536", "the global batch exceeds", 1 },
		{ "--data-path d --deterministic --threads 4096", "use at most ", 100 },
		{ "--data-path d --nesterov --momentum 0", "needs a --momentum above 0", 1 },
		{ "--data-path d --min-lr 0.2", "above --lr 0.1", 1 },
		{ "--data-path d --report-to ftp://x", "expected an http:// or https:// URL", 1 },
		{ "--data-path d --config /dev/zero", "/dev/zero: is larger than the maximum of 1048576 bytes", 1 },
		{ "--data-path d --config /nowhere/x.json", "/nowhere/x.json: No such file", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].line, cases[i].world, cases[i].words);
}

static void flags_without_effect_are_refused(void **state)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "bench --random-erase 0.1", "--random-erase: needs --loader" },
		{ "bench --rounds 3", "--rounds: needs --compare-with" },
		{ "bench --out f", "--out: needs --calibrate" },
		{ "plan --goal memory", "--goal: needs --auto, otherwise it has no effect" },
		{ "plan --explain", "--explain: needs --auto or --map" },
		{ "plan --auto --tokens 9", "--tokens: needs --catalogue" },
		{ "plan --auto --out f", "--out: needs --map" },
		{ "--data-path d --hardware f", "--hardware: needs --auto" },
		{ "--data-path d --model-ema-decay 0.9", "--model-ema-decay: needs --model-ema" },
		{ "--data-path d --shuffle none --shuffle-window 9", "--shuffle-window: needs --shuffle window" },
		{ "--synthetic --save-total-limit 0 --save-steps 3", "--save-steps: needs a --save-total" },
		{ "--synthetic --save-total-limit 0 --save-best epoch/top1", "--save-best: needs a --save-total" },
		{ "--synthetic --max-steps 1 --val-path d", "--val-path: needs --data-path" },
		{ "--synthetic --max-steps 1 --stop-epoch 1", "--stop-epoch: needs --data-path" },
		{ "doctor --run d --try", "--try: needs training without --run" },
		{ "--synthetic --max-steps 1 --cache ram", "--cache: needs --data-path" },
		{ "--synthetic --max-steps 1 --val-split 0.3", "--val-split: needs --data-path" },
		{ "--synthetic --max-steps 1 --shuffle window", "--shuffle: needs --data-path" },
		{ "--data-path d --lr-scheduler step --min-lr 0.05", "--min-lr: needs --lr-scheduler cosine" },
		{ "--data-path d --lr-scheduler constant --lr-gamma 0.5", "--lr-gamma: needs --lr-scheduler step" },
		{ "--data-path d --lr-step-size 1", "--lr-step-size: needs --lr-scheduler step" },
		{ "--data-path d --lr-scheduler linear --lr-power 2", "--lr-power: needs --lr-scheduler poly" },
	};
	struct run_config *c = good("bench --no-strict --no-drop-last", 1);

	(void)state;
	config_free(c);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		refused(cases[i].line, 1, cases[i].words);
}

/* A rank is bound to its cores after the configuration is resolved: they are all its own. */
static void bound_ranks_keep_their_cores(void **state)
{
	cpu_set_t all, one;
	struct run_config *c = good("--data-path d", 1);
	int cpu = 0;

	(void)state;
	if (sched_getaffinity(0, sizeof(all), &all))
		skip();
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		skip();
	assert_int_equal(c->cores, c->threads);
	assert_int_equal(config_cores(c), 1);
	config_free(c);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void batches(void **state)
{
	/* given -> batch, accumulation, global */
	static const struct {
		const char *flags;
		int world, batch, accum, global;
	} cases[] = {
		{ "", 1, 32, 1, 32 },
		{ "-b 8 --grad-accum-steps 3", 4, 8, 3, 96 },
		{ "--global-batch-size 12", 3, 4, 1, 12 },
		{ "--global-batch-size 10", 3, 4, 1, 10 },
		{ "--global-batch-size 10 -b 2", 3, 2, 2, 10 },
		{ "--global-batch-size 64 --grad-accum-steps 4", 2, 8, 4, 64 },
		{ "--global-batch-size 10 -b 2 --grad-accum-steps 2", 3, 2, 2, 10 },
		{ "--global-batch-size 2", 5, 1, 1, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[200];
		struct run_config *c;

		snprintf(line, sizeof(line), "--data-path d%s%s", *cases[i].flags ? " " : "", cases[i].flags);
		c = good(line, cases[i].world);
		assert_int_equal(c->batch_size, cases[i].batch);
		assert_int_equal(c->grad_accum_steps, cases[i].accum);
		assert_int_equal(c->global_batch_size, cases[i].global);
		config_free(c);
	}
}

static void derived_values(void **state)
{
	struct run_config *c = good("--data-path d --backend ref", 1);
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(c->precision, CONFIG_PRECISION_FP64);
	assert_int_equal(c->origin[FLAG_precision], ORIGIN_DERIVED);
	assert_true(c->threads >= 1);
	assert_int_equal(config_settle(c, FLAG_classes, 10, "d", &err), 0);
	assert_int_equal(c->classes, 10);
	config_free(c);
	c = good("--data-path d --precision fp64 --max-steps 5 --image-size 32", 1);
	assert_int_equal(c->backend, CONFIG_BACKEND_REF);
	assert_int_equal(c->epochs, 0);
	assert_int_equal(config_settle(c, FLAG_image_size, 32, "the images of d", &err), 0);
	assert_int_equal(config_settle(c, FLAG_image_size, 28, "the images of d", &err), ERR_USAGE);
	assert_string_equal(err.text, "--image-size 32 contradicts the images of d, which has 28");
	config_free(c);
}

static const char *file_named(const char *ending, const char *text)
{
	static char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "config_test.%ld.%s", (long)getpid(), ending);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static const char *file_with(const char *text)
{
	return file_named("json", text);
}

static void ranks_of_origins(void **state)
{
	char line[300];
	struct run_config *c;

	(void)state;
	snprintf(line, sizeof(line), "--data-path d -b 4 --config %s",
		 file_with("{\"batch-size\": 8, \"lr\": 0.5, \"threads\": 7, \"augment\": \"crop\", \"sync_bn\": true, "
			   "\"run_name\": null}"));
	setenv("OMP_NUM_THREADS", "3,2", 1);
	setenv("DPTRACK_URL", "http://h:1", 1);
	setenv("DPTRACK_RUNS_DIR", "elsewhere", 1);
	c = good(line, 1);
	assert_string_equal(c->runs_dir, "elsewhere");
	config_free(c);
	snprintf(line + strlen(line), sizeof(line) - strlen(line), " --logdir here");
	c = good(line, 1);
	unsetenv("OMP_NUM_THREADS");
	unsetenv("DPTRACK_URL");
	unsetenv("DPTRACK_RUNS_DIR");
	assert_string_equal(c->runs_dir, "here");
	assert_int_equal(c->batch_size, 4);
	assert_int_equal(c->origin[FLAG_batch_size], ORIGIN_FLAG);
	assert_int_equal(c->threads, 3);
	assert_int_equal(c->origin[FLAG_threads], ORIGIN_ENVIRONMENT);
	assert_string_equal(c->report_to, "http://h:1");
	assert_true(c->lr == 0.5 && c->sync_bn && !c->run_name);
	assert_int_equal(c->origin[FLAG_lr], ORIGIN_FILE);
	config_free(c);
	unlink(file_with(""));
}

static void bad_files(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", ":1: " },
		{ "{\"lr\": }", ":1: " },
		{ "[1]", "must be one object" },
		{ "{\"lrr\": 1}", "unknown key 'lrr'; did you mean 'lr'?" },
		{ "{\"lr\": 1, \"lr\": 2}", "duplicate object key" },
		{ "{\"lr\": \"1\"}", "lr is a string: expected a number" },
		{ "{\"sync_bn\": 1}", "sync_bn is a number: expected true or false" },
		{ "{\"model\": true}", "model is true: expected a string" },
		{ "{\"epochs\": 2.5}", "epochs '2.5': expected a whole number" },
		{ "{\"bf16\": true}", "unknown key 'bf16'" },
		{ "{\"config\": \"x\"}", "is not allowed in a configuration file" },
		{ "{\"steps\": -1}", "steps '-1': expected a whole number" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[200];

		snprintf(line, sizeof(line), "--data-path d --config %s", file_with(cases[i].text));
		refused(line, 1, cases[i].words);
	}
	unlink(file_with(""));
}

/* A byte order mark is skipped; after it a file is as any other. */
static void marked_files(void **state)
{
	char line[200];
	struct run_config *c;

	(void)state;
	snprintf(line, sizeof(line), "--data-path d --config %s", file_with("\xef\xbb\xbf{\"lr\": 0.5}"));
	c = good(line, 1);
	assert_true(c->lr == 0.5);
	config_free(c);
	snprintf(line, sizeof(line), "--data-path d --config %s", file_with("\xef\xbb\xbf"));
	refused(line, 1, ":1: ");
	unlink(file_with(""));
}

/* A value of a file neither begins a line of the printed table nor moves a terminal's cursor. */
static void control_characters(void **state)
{
	struct buf out;
	struct run_config *c;
	char line[200];

	(void)state;
	snprintf(line, sizeof(line), "--data-path d --config %s", file_with("{\"experiment\": \"a\\u001b[2J\\nb\"}"));
	c = good(line, 1);
	assert_string_equal(c->experiment, "a\033[2J\nb");
	buf_init(&out, 1 << 20);
	config_print(c, &(struct config_print_opts){ 0 }, &out);
	assert_non_null(strstr(out.data, "a?[2J?b"));
	assert_null(strchr(out.data, '\033'));
	buf_done(&out);
	config_free(c);
	unlink(file_with(""));
}

#ifdef HAVE_YAML
static const char yaml_text[] = "# settings\n"
				"lr: 1e-3\n"
				"batch-size: 8\n"
				"model: \"resnet20\"\n"
				"sync_bn: true\n"
				"augment: crop,flip\n"
				"run-name: 007\n"
				"data-path: train-{000000..000146}.tar\n"
				"experiment: >\n  two\n  words\n"
				"workers: auto\n"
				"max-steps: ~\n";

static void yaml_files(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "lr: 1\nlr: 2\n", ":2: 'lr' is given twice" },
		{ "lr: &a 1\nwd: *a\n", ":2: aliases are not supported" },
		{ "lr: !!float 1\n", ":1: tags are not supported" },
		{ "lr: [1\n", "yaml:" },
		{ "\tlr: 1\n", "yaml:1: " },
		{ "lr: 1\n---\nlr: 2\n", ":2: expected one document" },
		{ "- lr\n", "must be one object" },
		{ "", "must be one object" },
		{ "lr: 'fast'\n", "lr is a string: expected a number" },
		{ "lr: '1'\n", "lr is a string: expected a number" },
		{ "sync-bn: yes\n", "sync-bn is a string: expected true or false" },
		{ "lr: {a: 1}\n", "lr is an object: expected a number" },
		{ "lrr: 1\n", "unknown key 'lrr'; did you mean 'lr'?" },
		{ "epochs: 99999999999999999999\n", "epochs" },
		{ "? [a]\n: 1\n", ":1: a key must be a string" },
	};
	char line[200], deep[400];
	struct run_config *c;

	(void)state;
	for (int marked = 0; marked < 2; marked++) {
		char text[500];

		snprintf(text, sizeof(text), "%s%s", marked ? "\xef\xbb\xbf" : "", yaml_text);
		snprintf(line, sizeof(line), "--config %s --wd 0.25", file_named("yaml", text));
		c = good(line, 1);
		assert_true(c->lr == 1e-3 && c->batch_size == 8 && c->sync_bn && c->wd == 0.25 && c->workers == -1);
		assert_string_equal(c->model, "resnet20");
		assert_string_equal(c->run_name, "007");
		assert_string_equal(c->data_path, "train-{000000..000146}.tar");
		assert_string_equal(c->experiment, "two words\n");
		assert_int_equal(c->max_steps, 0);
		config_free(c);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(line, sizeof(line), "--data-path d --config %s", file_named("yaml", cases[i].text));
		refused(line, 1, cases[i].words);
	}
	snprintf(deep, sizeof(deep), "lr: %0100d\n", 0);
	memset(deep + 4, '[', 100);
	snprintf(line, sizeof(line), "--data-path d --config %s", file_named("yaml", deep));
	refused(line, 1, ":1: nested too deeply");
	unlink(file_named("yaml", ""));
}
#else
static void yaml_files(void **state)
{
	char line[200];

	(void)state;
	snprintf(line, sizeof(line), "--data-path d --config %s", file_named("yaml", "lr: 1\n"));
	refused(line, 1, "libyaml-dev");
	unlink(file_named("yaml", ""));
}
#endif

static void environment_is_checked(void **state)
{
	(void)state;
	setenv("OMP_NUM_THREADS", "many", 1);
	refused("--data-path d", 1, "OMP_NUM_THREADS 'many': expected a whole number");
	unsetenv("OMP_NUM_THREADS");
}

/* The output of `config --json` gives the same configuration when it is read back. */
static void printed_reads_back(void **state)
{
	struct run_config *a = good("config --data-path d --lr 0.30000000000000004 --augment crop --sync-bn -b 6", 2),
		*b;
	struct buf text, again;
	char line[200];

	(void)state;
	buf_init(&text, 1 << 16);
	buf_init(&again, 1 << 16);
	config_print(a, &(struct config_print_opts){ .json = true }, &text);
	assert_false(buf_failed(&text));
	snprintf(line, sizeof(line), "config --config %s", file_with(text.data));
	b = good(line, 2);
	assert_true(b->lr == a->lr && b->sync_bn && b->batch_size == 6 && b->global_batch_size == 12);
	assert_int_equal(b->origin[FLAG_global_batch_size], ORIGIN_DERIVED);
	assert_int_equal(b->origin[FLAG_epochs], ORIGIN_DEFAULT);
	config_print(b, &(struct config_print_opts){ .json = false }, &again);
	assert_non_null(strstr(again.data, "config file config_test."));
	unlink(file_with(""));
	buf_done(&text);
	buf_done(&again);
	config_free(a);
	config_free(b);
}

static void nearest_names(void **state)
{
	static const char *const names[] = { "lr", "label-smoothing", "batch_size", "momentum", "model" };

	(void)state;
	assert_string_equal(config_nearest("labelsmoothing", names, 5), "label-smoothing");
	assert_string_equal(config_nearest("batchsize", names, 5), "batch_size");
	assert_string_equal(config_nearest("mometnum", names, 5), "momentum");
	assert_string_equal(config_nearest("lable", names, 5) ? "found" : "none", "none");
	assert_string_equal(config_nearest("label", names, 5), "label-smoothing");
	assert_null(config_nearest("", names, 5));
	assert_null(config_nearest("something-else-entirely", names, 5));
}

/* The words of a choice in order, then null. */
static void same_words(const json_t *words, const char *form)
{
	size_t n = 0;

	for (; *form; n++) {
		const char *word = json_string_value(json_array_get(words, n));
		size_t len = strcspn(form, "|");

		assert_non_null(word);
		assert_int_equal(strlen(word), len);
		assert_memory_equal(word, form, len);
		form += len + (form[len] == '|');
	}
	assert_int_equal(json_array_size(words), n + 1);
}

/* schema/config/run-config.schema.json agrees with flags.def on every flag. */
static void schema_lists_every_flag(void **state)
{
	const char *top = getenv("srcdir");
	char path[4096];
	json_t *root, *properties;
	json_error_t je;

	(void)state;
	snprintf(path, sizeof(path), "%s/schema/config/run-config.schema.json", top ? top : ".");
	root = json_load_file(path, 0, &je);
	if (!root)
		fail_msg("%s:%d: %s", path, je.line, je.text);
	properties = json_object_get(root, "properties");
	for (int i = 0; i < FLAG_COUNT; i++) {
		static const char *const types[] = { "integer", "number", "boolean", "string", "string", "string" };
		const struct flag *f = flag_get((enum flag_id)i);
		json_t *p = json_object_get(properties, f->name);
		const char *low = f->above ? "exclusiveMinimum" : "minimum";

		if (i == FLAG_config || i == FLAG_json) {
			assert_null(p);
			continue;
		}
		if (!p)
			fail_msg("%s: no property %s", path, f->name);
		assert_string_equal(json_string_value(json_array_get(json_object_get(p, "type"), 0)), types[f->kind]);
		assert_string_equal(json_string_value(json_object_get(p, "description")), f->help);
		if (f->kind == KIND_CHOICE)
			same_words(json_object_get(p, "enum"), f->form);
		if (f->kind == KIND_INT || f->kind == KIND_REAL) {
			assert_true(json_number_value(json_object_get(p, low)) == f->least);
			assert_true(json_number_value(json_object_get(p, "maximum")) == f->greatest);
		}
		json_object_del(properties, f->name);
	}
	assert_int_equal(json_object_size(properties), 0);
	json_decref(root);
}

/* Returns the help of a command for a terminal of that width. */
static char *help_of(enum config_command c, const char *word, int width)
{
	struct err err = ERR_INIT;
	struct buf b;
	char *text;

	buf_init(&b, 1 << 18);
	assert_int_equal(config_help(&(struct config_help_opts){ c, word, width }, &b, &err), 0);
	assert_false(buf_failed(&b));
	text = strdup(b.data);
	assert_non_null(text);
	buf_done(&b);
	return text;
}

/* Counts the lines; none may be wider than the terminal unless it is a single word or an example that is as given. */
static int count_lines(const char *text, int width)
{
	int n = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n") + 1, n++) {
		char one[400];

		snprintf(one, sizeof(one), "%.*s", (int)strcspn(line, "\n"), line);
		if ((int)utf8_chars(one) > width)
			fail_msg("more than %d columns: %s", width, one);
	}
	return n;
}

static void dash_name(enum flag_id id, char *name, size_t n)
{
	snprintf(name, n, "--%s", flag_get(id)->name);
	for (char *p = name; *p; p++)
		*p = *p == '_' ? '-' : *p;
}

static void help_names_every_flag(void **state)
{
	(void)state;
	for (int c = 0; c < COMMAND_COUNT; c++) {
		char *all = help_of((enum config_command)c, "all", 100);

		for (int i = 0; i < FLAG_COUNT; i++) {
			char name[60];

			dash_name((enum flag_id)i, name, sizeof(name));
			if (flag_known_to((enum flag_id)i, (enum config_command)c) && !strstr(all, name + 2))
				fail_msg("help of %s lacks %s", config_command_name((enum config_command)c), name);
		}
		assert_non_null(strstr(all, "\nExamples\n  dptrain "));
		count_lines(all, 100);
		free(all);
	}
}

/* The short help of every command fits into 80 columns and 50 lines; that of train has twenty flags. */
static const char *find_word(const char *text, const char *word)
{
	const size_t n = strlen(word);

	while ((text = strstr(text, word)) && isalnum((unsigned char)text[n]))
		text += n;
	return text;
}

static void check_optimizer_help(const char *opt, enum flag_id id)
{
	const struct flag *f = flag_get(id);
	const char *defaults = strstr(f->help, "not given: "), *at;
	struct run_config *cfg = NULL;
	struct err err = ERR_INIT;
	char name[60], line[200];
	int rc;

	dash_name(id, name, sizeof(name));
	snprintf(line, sizeof(line), "--synthetic --max-steps 1 --opt %s %s=%s", opt, name,
		 f->kind == KIND_BOOL ? "true" : "0.5");
	rc = resolve(&cfg, line, 1, &err);
	if (!rc != (find_word(f->help, opt) != NULL))
		fail_msg("%s: %s, but the help is \"%s\"", line, rc ? err.text : "valid", f->help);
	if (rc)
		return;
	config_free(cfg);
	if (!defaults)
		return;
	snprintf(line, sizeof(line), "--synthetic --max-steps 1 --opt %s", opt);
	cfg = good(line, 1);
	at = find_word(defaults, opt) ? find_word(defaults, opt) : defaults;
	if (strtod(at + strcspn(at, "0123456789"), NULL) != *(const double *)((const char *)cfg + f->offset))
		fail_msg("%s: the help of %s has another default: \"%s\"", line, name, f->help);
	config_free(cfg);
}

/* The help of an option names the optimisers that have it, and after "not given:" their defaults. */
static void help_agrees_with_optimizers(void **state)
{
	static const enum flag_id ids[] = { FLAG_lr,	FLAG_wd,    FLAG_momentum, FLAG_nesterov,
					    FLAG_beta1, FLAG_beta2, FLAG_eps,	   FLAG_trust_coef };
	static const char *const names[] = {
#define OPTIMIZER(name, ...) #name,
#include "trainer/optimizers/optimizers.def"
#undef OPTIMIZER
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t k = 0; k < sizeof(ids) / sizeof(ids[0]); k++)
			check_optimizer_help(names[i], ids[k]);
}

static void help_fits_a_screen(void **state)
{
	int flags = 0;

	(void)state;
	for (int c = 0; c < COMMAND_COUNT; c++) {
		char *text = help_of((enum config_command)c, NULL, 80);

		if (count_lines(text, 80) > 50)
			fail_msg("help of %s: more than 50 lines", config_command_name((enum config_command)c));
		for (const char *at = text; c == COMMAND_TRAIN && (at = strstr(at, "\n  -")); at++)
			flags++;
		free(text);
	}
	assert_int_equal(flags, 20);
}

/* A word finds flags by name, by another program's name and by text, and series; nonsense is an error. */
static void help_is_searched(void **state)
{
	static const char *const expected[][2] = {
		{ "mixup", "--cutmix-alpha" },	     { "--lr", "--lr-warmup-epochs" }, { "learning_rate", "--lr X" },
		{ "num_workers", "--workers" },	     { "gpt2-774m", "--model" },       { "CHECKPOINT", "--save-steps" },
		{ "noise scale", "train/noise_scale" }, { "shard-size", "dptrain shard" }, { "calibrate", "--out" },
	};
	struct err err = ERR_INIT;
	struct buf b;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		char *text = help_of(COMMAND_TRAIN, expected[i][0], 80);

		if (!strstr(text, expected[i][1]))
			fail_msg("--help %s lacks %s: %s", expected[i][0], expected[i][1], text);
		free(text);
	}
	buf_init(&b, 1 << 16);
	assert_int_equal(config_help(&(struct config_help_opts){ COMMAND_TRAIN, "epocs", 80 }, &b, &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "did you mean epochs?"));
	assert_int_equal(b.len, 0);
	buf_done(&b);
}

/* --link with every supported unit. */
static void links(void **state)
{
	static const struct {
		const char *line;
		double latency_s, bytes_per_s;
	} cases[] = {
		{ "bench", 0, 0 },
		{ "bench --link 0us,0GB/s", 0, 0 },
		{ "bench --link 200us,1.25GB/s", 200e-6, 1.25e9 },
		{ "bench --link 3ms,40MB/s", 3e-3, 40e6 },
		{ "bench --link 1s,10Gbit/s", 1, 1.25e9 },
		{ "doctor --data-path d --link .5ms,100Mbit/s", 0.5e-3, 12.5e6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run_config *c = good(cases[i].line, 2);
		struct err err = ERR_INIT;
		double latency_s, bytes_per_s;

		assert_int_equal(config_link(c, &latency_s, &bytes_per_s, &err), 0);
		assert_true(fabs(latency_s - cases[i].latency_s) <= 1e-12);
		assert_true(fabs(bytes_per_s - cases[i].bytes_per_s) <= 1);
		config_free(c);
	}
	refused("bench --link 3", 2, "as in 200us,1.25GB/s");
	refused("bench --link 3us,1", 2, "--link '3us,1': expected a latency");
	refused("bench --link 3us,-1GB/s", 2, "expected a latency");
	refused("bench --link ,1GB/s", 2, "expected a latency");
	refused("bench --link 3us,1GB/s --backend cuda", 2, "not of GPUs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links),
		cmocka_unit_test(spellings),
		cmocka_unit_test(every_default_and_choice),
		cmocka_unit_test(bad_settings_are_refused),
		cmocka_unit_test(flags_without_effect_are_refused),
		cmocka_unit_test(bound_ranks_keep_their_cores),
		cmocka_unit_test(batches),
		cmocka_unit_test(derived_values),
		cmocka_unit_test(ranks_of_origins),
		cmocka_unit_test(bad_files),
		cmocka_unit_test(marked_files),
		cmocka_unit_test(control_characters),
		cmocka_unit_test(yaml_files),
		cmocka_unit_test(environment_is_checked),
		cmocka_unit_test(printed_reads_back),
		cmocka_unit_test(nearest_names),
		cmocka_unit_test(schema_lists_every_flag),
		cmocka_unit_test(help_names_every_flag),
		cmocka_unit_test(help_agrees_with_optimizers),
		cmocka_unit_test(help_fits_a_screen),
		cmocka_unit_test(help_is_searched),
	};

	unsetenv("OMP_NUM_THREADS");
	unsetenv("DPTRACK_URL");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
