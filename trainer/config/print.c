/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: --help and `dptrain config`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tracker/base/text.h"
#include "tracker/base/utf8.h"
#include "trainer/config/config.h"
#include "trainer/config/flags.h"

#define VALUE_BYTES_MAX (FLAG_TEXT_MAX + 1)
#define HELP_COLUMN 34
#define HELP_WIDTH 108

struct command_help {
	const char *usage, *about;
};

static const struct command_help helps[COMMAND_COUNT] = {
	[COMMAND_TRAIN] = { "dptrain [train] --data-path DIR [flags]",
			    "Trains a network and records the run.\n\n"
			    "Other commands, each with its own --help:\n"
			    "  dptrain config     print every value that a run would use, and where it came from\n"
			    "  dptrain plan       print the memory plan of a run\n"
			    "  dptrain bench      time whole training steps on random inputs\n"
			    "  dptrain doctor     find what is slow, why, and what to do next\n"
			    "  dptrain find       find a learning rate (lr) or a batch size (batch) with short runs\n"
			    "  dptrain tokenize   convert texts to token files\n"
			    "  dptrain inspect    say what a data set has, and what a training would leave out\n"
			    "  dptrain shard      pack a set into tar shards\n"
			    "  dptrain sweep      train many settings, the promising ones longer\n"
			    "  dptrain sample     generate text with a trained language model\n"
			    "  dptrain backends   list compute backends, and why some cannot run\n" },
	[COMMAND_CONFIG] = { "dptrain config [flags of dptrain train] [--json]",
			     "Prints every value that `dptrain train` would use with these flags, and its origin:\n"
			     "default, config file, environment, flag or derived. --config accepts the JSON output."
			     "\n" },
	[COMMAND_BACKENDS] = { "dptrain backends [--describe]",
			       "Lists the backends with their versions, or why one cannot run.\n" },
	[COMMAND_PLAN] = { "dptrain plan [flags of dptrain train] [--auto [--goal GOAL] [--explain] [--json]] | --map",
			   "Prepares the program of a run and prints its memory plan; --auto ranks the plans for its "
			   "global\nbatch, on this machine or on one that --hardware describes. --map: the fastest "
			   "strategy by size of a\nGPT, batch and link.\n" },
	[COMMAND_DOCTOR] = { "dptrain doctor [flags of dptrain train] [--try] | --run DIR",
			     "Trains for a while, or reads a recorded run, and reports what makes it slow: the share "
			     "of the\ntime, the evidence, what to do next and the expected gain.\n" },
	[COMMAND_FIND] = { "dptrain find lr|batch [flags of dptrain train]",
			   "lr: trains for --max-steps steps (100) while the learning rate rises over seven decades "
			   "up to --lr (10),\nuntil the loss explodes, and suggests a learning rate. batch: reports "
			   "which batch sizes fit (by the\nplan), which is fastest (a short run of each) and up to "
			   "which size a larger batch pays off (by the\ngradient noise scale). Recorded in experiment "
			   "find; --json prints the numbers.\n" },
	[COMMAND_TOKENIZE] = { "dptrain tokenize --data-path TEXTS --out DIR [--tokenizer bytes|DIR]",
			       "Converts texts (*.txt, *.jsonl, plain or compressed by gzip or zstd, and *.parquet; a "
			       "folder, files, or\naddresses in a store) to train.tokens and val.tokens for "
			       "--data-path. Uses all cores.\n" },
	[COMMAND_SHARD] = { "dptrain shard --data-path SET --out DIR [--shard-size BYTES] [--order shuffled|kept]",
			    "Packs pictures (unchanged files) or images into tar shards for --data-path and for other "
			    "readers of\nthe WebDataset format. The same set gives the same bytes.\n" },
	[COMMAND_INSPECT] = { "dptrain inspect --data-path SET [--strict] [--json]",
			      "Says which files and samples of a set a training uses, by kind and class, what it "
			      "leaves out and why,\nand shows the first samples with their labels and sizes. --strict: "
			      "fails if anything is left out.\n" },
	[COMMAND_SWEEP] = { "dptrain sweep FILE [--max-parallel N] [--runs-dir DIR] [--experiment NAME]",
			    "Trains the settings that a JSON file describes, each as a separate run. Called again, it "
			    "continues.\n\n"
			    "  {\"name\": \"lr\", \"method\": \"grid\" | \"random\" | \"asha\",\n"
			    "   \"metric\": {\"name\": \"epoch/top1\", \"goal\": \"maximize\"}, \"seed\": 0,\n"
			    "   \"trials\": 27,\n"
			    "   \"parameters\": {\"lr\": {\"min\": 0.01, \"max\": 1,\n"
			    "                         \"distribution\": \"log_uniform_values\"},\n"
			    "                  \"opt\": {\"values\": [\"sgd\", \"adamw\"]}},\n"
			    "   \"flags\": {\"model\": \"resnet20\", \"data-path\": \"data\", \"epochs\": 27},\n"
			    "   \"asha\": {\"min_epochs\": 3, \"eta\": 3}}\n" },
	[COMMAND_SAMPLE] = { "dptrain sample --init-from FILE [--tokenizer bytes|DIR] --prompt TEXT [flags]",
			     "Continues a text with a trained language model.\n" },
	[COMMAND_BENCH] = { "dptrain bench --model NAME -b N [flags]",
			    "Times whole training steps (forward, loss, backward, optimiser) on random inputs; with "
			    "--loader the\nloader of --data-path.\n" },
};

static void add_spaces(struct buf *out, int n)
{
	while (n-- > 0)
		buf_addc(out, ' ');
}

static void add_dashed_flag(struct buf *out, const char *name)
{
	for (; *name; name++)
		buf_addc(out, *name == '_' ? '-' : *name);
}

/* "-b, --batch-size N", "--[no-]sync-bn" */
static void add_spelling(struct buf *out, enum flag_id id)
{
	const struct flag *f = flag_get(id);
	size_t n;
	const struct flag_alias *a = flag_aliases(&n);

	for (size_t i = 0; i < n; i++)
		if (a[i].id == id && !a[i].name[1])
			buf_addf(out, "-%s, ", a[i].name);
	buf_adds(out, f->kind == KIND_BOOL ? "--[no-]" : "--");
	add_dashed_flag(out, f->name);
	if (f->kind == KIND_SET)
		buf_adds(out, " LIST");
	else if (f->kind == KIND_CHOICE)
		buf_adds(out, " WORD");
	else if (f->kind != KIND_BOOL)
		buf_addf(out, " %s", f->form);
}

/* Adds the end of the help line: choices, default, aliases. */
static void add_notes(struct buf *out, enum flag_id id)
{
	const struct flag *f = flag_get(id);
	size_t n;
	const struct flag_alias *a = flag_aliases(&n);

	if (f->kind == KIND_CHOICE)
		buf_addf(out, ": %s", f->form);
	if (*f->fallback && f->kind != KIND_BOOL)
		buf_addf(out, " [%s]", f->fallback);
	for (size_t i = 0; i < n; i++)
		if (a[i].id == id && a[i].name[1]) {
			buf_addf(out, a[i].value ? "; --%s means %s" : "; also --", a[i].name, a[i].value);
			if (!a[i].value)
				add_dashed_flag(out, a[i].name);
		}
}

/* Adds text, broken between words; later lines are indented. */
static void add_wrapped(struct buf *out, const char *text)
{
	int column = HELP_COLUMN;
	bool first = true;

	while (*text) {
		int len = (int)strcspn(text, " ");

		if (!first && column + 1 + len > HELP_WIDTH) {
			buf_addc(out, '\n');
			add_spaces(out, HELP_COLUMN);
			column = HELP_COLUMN;
		} else if (!first) {
			buf_addc(out, ' ');
			column++;
		}
		buf_add(out, text, (size_t)len);
		column += len;
		text += len + (text[len] == ' ');
		first = false;
	}
	buf_addc(out, '\n');
}

static void add_flag_help(struct buf *out, enum flag_id id)
{
	struct buf spelling, text;
	int width;

	buf_init(&spelling, 200);
	buf_init(&text, 1000);
	add_spelling(&spelling, id);
	buf_adds(&text, flag_get(id)->help);
	add_notes(&text, id);
	width = (int)utf8_chars(spelling.data);
	buf_addf(out, "  %s", spelling.data);
	if (width + 3 > HELP_COLUMN) {
		buf_addc(out, '\n');
		add_spaces(out, HELP_COLUMN);
	} else {
		add_spaces(out, HELP_COLUMN - 2 - width);
	}
	add_wrapped(out, text.data);
	buf_done(&spelling);
	buf_done(&text);
}

/* Adds the series that libdptrack writes. */
static void add_system_series(struct buf *out)
{
	static const struct {
		const char *key, *help;
	} rows[] = {
#define SYSTEM(name, kind, help) { "system/" #name, help " (each rank)" },
#include "schema/event/system.def"
#undef SYSTEM
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_addf(out, "  %-*s", HELP_COLUMN - 2, rows[i].key);
		add_wrapped(out, rows[i].help);
	}
}

static void add_series_help(struct buf *out)
{
	static const char *const notes[][2] = {
		[SERIES_OF_RUN] = { [SERIES_AT_STEP] = "", [SERIES_AT_EPOCH] = "" },
		[SERIES_OF_RANK] = { [SERIES_AT_STEP] = " (each rank)", [SERIES_AT_EPOCH] = " (each rank, by epoch)" },
		[SERIES_OF_ROOT] = { [SERIES_AT_STEP] = " (rank 0)", [SERIES_AT_EPOCH] = " (rank 0, by epoch)" },
	};

	buf_adds(out, "\nSeries of a run, by optimiser step (epoch/*: by epoch), both from 1\n");
	for (int i = 0; i < SERIES_COUNT; i++) {
		const struct series *s = series_get((enum series_id)i);
		char text[200];

		snprintf(text, sizeof(text), "%s%s", s->help, notes[s->of][s->at]);
		buf_addf(out, "  %-*s", HELP_COLUMN - 2, s->key);
		add_wrapped(out, text);
	}
	add_system_series(out);
}

void config_help(enum config_command c, struct buf *out)
{
	const char *group = "";

	buf_addf(out, "usage: %s\n\n%s", helps[c].usage, helps[c].about);
	for (int i = 0; i < FLAG_COUNT; i++) {
		const struct flag *f = flag_get((enum flag_id)i);

		if (!flag_known_to((enum flag_id)i, c))
			continue;
		if (strcmp(group, f->group))
			buf_addf(out, "\n%s\n", group = f->group);
		add_flag_help(out, (enum flag_id)i);
	}
	if (c == COMMAND_TRAIN) {
		add_series_help(out);
		buf_adds(out,
			 "\nSIGTERM, SIGUSR1 and SIGHUP (terminal or ssh connection closed; nohup ignores it) stop "
			 "a run\n"
			 "after its step and a checkpoint, with exit code 75; --resume continues. Ctrl-C does the "
			 "same\n"
			 "with 130. A second signal, except SIGHUP, stops it at once.\n");
	}
	buf_adds(out, "\n'-' and '_' are equal in names, as are --flag=value and --flag value. [x] is the default.\n"
		      "Exit codes: 0 done, 1 failed while running, 2 bad usage or input, 75 preempted after a "
		      "checkpoint,\n"
		      "130 interrupted.\n");
}

static bool is_numeric_value(const struct flag *f, const char *value)
{
	const char *word = flag_word(f);

	return f->kind == KIND_REAL || (f->kind == KIND_INT && !(word && value && !strcmp(value, word)));
}

int config_each(const struct run_config *cfg, void (*fn)(void *user, const struct config_item *item), void *user)
{
	struct buf value;
	int rc = 0;

	buf_init(&value, VALUE_BYTES_MAX);
	for (int i = 0; i < FLAG_COUNT; i++) {
		const struct flag *f = flag_get((enum flag_id)i);

		if (!flag_known_to((enum flag_id)i, cfg->command))
			continue;
		buf_reset(&value);
		flag_text(cfg, (enum flag_id)i, &value);
		if (buf_failed(&value)) {
			rc = ERR_NOMEM;
			break;
		}
		if (value.len)
			text_hide_credentials(value.data);
		fn(user, &(struct config_item){ .name = f->name,
						.value = value.len ? value.data : "",
						.origin = (enum config_origin)cfg->origin[i],
						.is_number = is_numeric_value(f, value.data),
						.traits = f->traits,
						.id = (enum flag_id)i });
	}
	buf_done(&value);
	return rc;
}

struct config_table {
	const struct run_config *cfg;
	struct buf *out;
	const char *group;
};

static void add_config_row(void *user, const struct config_item *item)
{
	struct config_table *t = user;
	const struct flag *f = flag_get(item->id);
	char label[300];

	if (strcmp(t->group, f->group))
		buf_addf(t->out, "%s%s\n", *t->group ? "\n" : "", f->group);
	t->group = f->group;
	buf_addf(t->out, "  %-20s %-24s %s", item->name, *item->value ? item->value : "-",
		 config_origin_name(item->origin));
	if (item->origin == ORIGIN_ENVIRONMENT)
		buf_addf(t->out, " %s", flag_label(t->cfg, item->id, label, sizeof(label)));
	if (item->origin == ORIGIN_FILE)
		buf_addf(t->out, " %s", t->cfg->config);
	buf_addc(t->out, '\n');
}

struct config_object {
	json_t *values, *origins;
	bool failed;
};

static void add_member(void *user, const struct config_item *item)
{
	struct config_object *o = user;
	json_t *v;

	if (!*item->value)
		v = json_null();
	else if (item->is_number)
		v = json_loads(item->value, JSON_DECODE_ANY, NULL);
	else if (flag_get(item->id)->kind == KIND_BOOL)
		v = json_boolean(!strcmp(item->value, "yes"));
	else
		v = json_string(item->value);
	if (json_object_set_new(o->values, item->name, v) ||
	    json_object_set_new(o->origins, item->name, json_string(config_origin_name(item->origin))))
		o->failed = true;
}

static int append_config_json(const char *bytes, size_t n, void *user)
{
	buf_add(user, bytes, n);
	return 0;
}

static void print_config_json(const struct run_config *cfg, int64_t parameters, struct buf *out)
{
	struct config_object o = { json_object(), json_object(), false };
	json_t *root;

	if (config_each(cfg, add_member, &o))
		o.failed = true;
	root = json_pack("{s:s, s:i, s:o, s:o}", "command", config_command_name(cfg->command), "world", cfg->world,
			 "values", o.values, "origins", o.origins);
	if (root && parameters && json_object_set_new(root, "parameters", json_integer(parameters)))
		o.failed = true;
	if (!root || o.failed ||
	    json_dump_callback(root, append_config_json, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER))
		out->failed = true;
	buf_addc(out, '\n');
	json_decref(root);
}

void config_print(const struct run_config *cfg, const struct config_print_opts *o, struct buf *out)
{
	if (o->json) {
		print_config_json(cfg, o->parameters, out);
		return;
	}
	if (o->parameters)
		buf_addf(out, "%s: %lld parameters\n\n", cfg->model, (long long)o->parameters);
	if (config_each(cfg, add_config_row, &(struct config_table){ cfg, out, "" }))
		out->failed = true;
}
