/* SPDX-License-Identifier: Apache-2.0 */
/* help.c: --help: in one screen, of every flag, or of what a word names; candidates for completion. */
#include <stdio.h>
#include <string.h>

#include "tracker/base/text.h"
#include "tracker/base/utf8.h"
#include "trainer/config/flags.h"

#define HELP_COLUMN 34
#define BRIEF_COLUMN 27
#define BRIEF_FLAGS_MIN 8 /* a command with fewer lines in brief.def prints all its flags */

struct command_help {
	const char *purpose; /* one line for the list of commands */
	const char *usage, *about, *examples;
};

/* Texts have lines of at most 78 columns. */
static const struct command_help helps[COMMAND_COUNT] = {
	[COMMAND_TRAIN] = { "train a network and record the run", "dptrain [train] --data-path DIR [FLAGS]",
			    "Trains a network and records the run.\n",
			    "  dptrain --data-path data --model resnet20 -b 128 --epochs 10\n"
			    "  dptrain --data-path data --model resnet50 --nproc-per-node 2 --bf16\n"
			    "  dptrain --data-path text --model gpt2-124m --resume auto --report-to URL\n" },
	[COMMAND_CONFIG] = { "print every value that a run would use, and its origin",
			     "dptrain config [flags of dptrain train] [--json]",
			     "Prints every value that `dptrain train` would use with these flags, and its\n"
			     "origin: default, config file, environment, flag or derived. --config accepts\n"
			     "the JSON output.\n",
			     "  dptrain config --data-path data --model resnet20\n"
			     "  dptrain config --data-path data --lr 0.2 --json >run.json\n" },
	[COMMAND_BACKENDS] = { "list compute backends, and why some cannot run", "dptrain backends [--describe]",
			       "Lists the backends with their versions, or why one cannot run.\n",
			       "  dptrain backends\n"
			       "  dptrain backends --describe >gpu.json\n" },
	[COMMAND_PLAN] = { "print the memory plan of a run, or the best plan",
			   "dptrain plan [flags of dptrain train] [--auto [--goal GOAL]] | --map",
			   "Prepares the program of a run and prints its memory plan; --auto ranks the\n"
			   "plans for its global batch, on this machine or on one that --hardware\n"
			   "describes. --map: the fastest strategy by size of a GPT, batch and link.\n",
			   "  dptrain plan --model resnet50 --image-size 224 --classes 1000 -b 64\n"
			   "  dptrain plan --model gpt2-774m --global-batch-size 64 --auto --explain\n"
			   "  dptrain plan --map --hardware a100-40gb-x8\n" },
	[COMMAND_DOCTOR] = { "find what is slow, why, and what to do next",
			     "dptrain doctor [flags of dptrain train] [--try] | --run DIR",
			     "Trains for a while, or reads a recorded run, and reports what makes it slow:\n"
			     "the share of the time, the evidence, what to do next and the expected gain.\n",
			     "  dptrain doctor --data-path data --model resnet20 -b 128 --try\n"
			     "  dptrain doctor --run runs/default/red-fox-1a2b3c4d\n" },
	[COMMAND_FIND] = { "find a learning rate (lr) or a batch size (batch)",
			   "dptrain find lr|batch [flags of dptrain train]",
			   "lr: trains for --max-steps steps (100) while the learning rate rises over\n"
			   "seven decades up to --lr (10), until the loss explodes; then for three times\n"
			   "as many steps with each of five or more rates, and suggests the one with the\n"
			   "lowest loss. batch: reports which batch sizes fit (by the plan), which is\n"
			   "fastest (a short run of each) and up to which size a larger batch pays off (by\n"
			   "the gradient noise scale). Recorded in experiment find; --json prints the\n"
			   "numbers.\n",
			   "  dptrain find lr --data-path data --model resnet20 -b 128\n"
			   "  dptrain find batch --data-path data --model resnet20 --json\n" },
	[COMMAND_TOKENIZE] = { "convert texts to token files",
			       "dptrain tokenize --data-path TEXTS --out DIR [--tokenizer bytes|DIR]",
			       "Converts texts (*.txt, *.jsonl, plain or compressed by gzip or zstd, and\n"
			       "*.parquet; a folder, files, or addresses in a store) to train.tokens and\n"
			       "val.tokens for --data-path. Uses all cores.\n",
			       "  dptrain tokenize --data-path books --out tokens\n"
			       "  dptrain tokenize --data-path web.jsonl.zst --tokenizer gpt2 --out tokens\n" },
	[COMMAND_SHARD] = { "pack a set into tar shards",
			    "dptrain shard --data-path SET --out DIR [--shard-size BYTES] [FLAGS]",
			    "Packs pictures (unchanged files) or images into tar shards for --data-path and\n"
			    "for other readers of the WebDataset format. The same set gives the same bytes.\n",
			    "  dptrain shard --data-path photos --out shards\n"
			    "  dptrain shard --data-path photos --out shards --decode 256 --shard-size 1GB\n" },
	[COMMAND_INSPECT] = { "say what a data set has, and what a training would leave out",
			      "dptrain inspect --data-path SET [--strict] [--json]",
			      "Says which files and samples of a set a training uses, by kind and class, what\n"
			      "it leaves out and why, and shows the first samples with their labels and\n"
			      "sizes. --strict: fails if anything is left out.\n",
			      "  dptrain inspect --data-path photos\n"
			      "  dptrain inspect --data-path 'shards/train-{000..099}.tar' --strict\n" },
	[COMMAND_SWEEP] = { "train many settings, the promising ones longer",
			    "dptrain sweep FILE [--max-parallel N] [--experiment NAME]",
			    "Trains the settings that a file (JSON, or YAML in *.yaml) describes, each as a\n"
			    "separate run. Called again, it continues.\n\n"
			    "  {\"name\": \"lr\", \"method\": \"grid\" | \"random\" | \"asha\",\n"
			    "   \"metric\": {\"name\": \"epoch/top1\", \"goal\": \"maximize\"}, \"seed\": 0,\n"
			    "   \"trials\": 27,\n"
			    "   \"parameters\": {\"lr\": {\"min\": 0.01, \"max\": 1,\n"
			    "                         \"distribution\": \"log_uniform_values\"},\n"
			    "                  \"opt\": {\"values\": [\"sgd\", \"adamw\"]}},\n"
			    "   \"flags\": {\"model\": \"resnet20\", \"data-path\": \"data\", \"epochs\": 27},\n"
			    "   \"asha\": {\"min_epochs\": 3, \"eta\": 3}}\n",
			    "  dptrain sweep lr.json\n"
			    "  dptrain sweep lr.json --max-parallel 2\n" },
	[COMMAND_SAMPLE] = { "generate text with a trained language model",
			     "dptrain sample --init-from FILE --prompt TEXT [FLAGS]",
			     "Continues a text with a trained language model.\n",
			     "  dptrain sample --init-from runs/default/red-fox-1a2b3c4d --prompt 'Once'\n"
			     "  dptrain sample --init-from w.safetensors --temperature 0.8 --top-k 40\n" },
	[COMMAND_MERGE] = { "add a LoRA adapter to its weights",
			    "dptrain merge --init-from BASE --adapter DIR --out DIR",
			    "Adds the adapter of a run with --lora to the weights that it was trained on, and\n"
			    "writes them as a folder like that of the base.\n",
			    "  dptrain merge --init-from Qwen3-0.6B --adapter runs/RUN/adapter --out tuned\n" },
	[COMMAND_EXPORT] = { "write a decoder as a GGUF file",
			     "dptrain export --init-from DIR --gguf f16|bf16|q8_0 --out FILE",
			     "Writes a decoder with its tokenizer and chat template as one GGUF file, as\n"
			     "llama.cpp and programs built on it read.\n",
			     "  dptrain export --init-from runs/RUN --gguf q8_0 --out tuned.gguf\n" },
	[COMMAND_BENCH] = { "time whole training steps on random inputs", "dptrain bench --model NAME -b N [FLAGS]",
			    "Times whole training steps (forward, loss, backward, optimiser) on random\n"
			    "inputs; with --loader the loader of --data-path.\n",
			    "  dptrain bench --model resnet20 -b 128 --bf16\n"
			    "  dptrain bench --model resnet20 -b 128 --compare-with '--bf16'\n"
			    "  dptrain bench --bandwidth --nproc-per-node 2\n" },
};

/* In the order of the list of commands. */
static const enum config_command listed[COMMAND_COUNT] = {
	COMMAND_TRAIN,	COMMAND_CONFIG, COMMAND_PLAN,	  COMMAND_BENCH,    COMMAND_DOCTOR,
	COMMAND_FIND,	COMMAND_SWEEP,	COMMAND_TOKENIZE, COMMAND_INSPECT,  COMMAND_SHARD,
	COMMAND_SAMPLE, COMMAND_MERGE,	COMMAND_EXPORT,	  COMMAND_BACKENDS,
};

/* Text with a left column for names: `column` is where the texts begin, `width` the columns of a line. */
struct help_page {
	struct buf *out;
	int column, width;
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

/* Adds text from the page's column on, broken between words; later lines are indented. */
static void add_wrapped(const struct help_page *page, const char *text)
{
	int column = page->column;
	bool first = true;

	while (*text) {
		size_t bytes = strcspn(text, " ");
		char word[200];
		int len;

		snprintf(word, sizeof(word), "%.*s", (int)bytes, text);
		len = (int)utf8_chars(word);
		if (!first && column + 1 + len > page->width) {
			buf_addc(page->out, '\n');
			add_spaces(page->out, page->column);
			column = page->column;
		} else if (!first) {
			buf_addc(page->out, ' ');
			column++;
		}
		buf_add(page->out, text, bytes);
		column += len;
		text += bytes + (text[bytes] == ' ');
		first = false;
	}
	buf_addc(page->out, '\n');
}

/* Adds a name and its text. The text begins on the next line where the name is too long. */
static void add_help_entry(const struct help_page *page, const char *name, const char *text)
{
	const int width = (int)utf8_chars(name);

	buf_addf(page->out, "  %s", name);
	if (width + 3 > page->column) {
		buf_addc(page->out, '\n');
		add_spaces(page->out, page->column);
	} else {
		add_spaces(page->out, page->column - 2 - width);
	}
	add_wrapped(page, text);
}

/* text: what replaces the flag's help and notes; NULL: these. */
static void add_flag_help(const struct help_page *page, enum flag_id id, const char *brief)
{
	struct buf spelling, text;

	buf_init(&spelling, 200);
	buf_init(&text, 2000);
	add_spelling(&spelling, id);
	if (brief) {
		buf_adds(&text, brief);
		if (*flag_get(id)->fallback && flag_get(id)->kind != KIND_BOOL)
			buf_addf(&text, " [%s]", flag_get(id)->fallback);
	} else {
		buf_adds(&text, flag_get(id)->help);
		add_notes(&text, id);
	}
	add_help_entry(page, spelling.data ? spelling.data : "", text.data ? text.data : "");
	buf_done(&spelling);
	buf_done(&text);
}

/* ---- series ---- */

struct series_entry {
	const char *key;
	char help[300];
};

enum { SYSTEM_SERIES = 0
#define SYSTEM(name, kind, help) + 1
#include "schema/event/system.def"
#undef SYSTEM
};

/* Gets the entry of a series of dptrain or, after these, of libdptrack. */
static void get_series_entry(int i, struct series_entry *ret)
{
	static const char *const notes[][2] = {
		[SERIES_OF_RUN] = { [SERIES_AT_STEP] = "", [SERIES_AT_EPOCH] = "" },
		[SERIES_OF_RANK] = { [SERIES_AT_STEP] = " (each rank)", [SERIES_AT_EPOCH] = " (each rank, by epoch)" },
		[SERIES_OF_ROOT] = { [SERIES_AT_STEP] = " (rank 0)", [SERIES_AT_EPOCH] = " (rank 0, by epoch)" },
	};
	static const char *const system[][2] = {
#define SYSTEM(name, kind, help) { "system/" #name, help },
#include "schema/event/system.def"
#undef SYSTEM
	};
	const struct series *s;

	if (i >= SERIES_COUNT) {
		ret->key = system[i - SERIES_COUNT][0];
		snprintf(ret->help, sizeof(ret->help), "%s (each rank)", system[i - SERIES_COUNT][1]);
		return;
	}
	s = series_get((enum series_id)i);
	ret->key = s->key;
	snprintf(ret->help, sizeof(ret->help), "%s%s", s->help, notes[s->of][s->at]);
}

static void add_series_help(const struct help_page *page)
{
	struct series_entry e;

	buf_adds(page->out, "\nSeries of a run, by optimiser step (epoch/*: by epoch), both from 1\n");
	for (int i = 0; i < SERIES_COUNT + SYSTEM_SERIES; i++) {
		get_series_entry(i, &e);
		add_help_entry(page, e.key, e.help);
	}
}

/* ---- the pages ---- */

static int count_flags(enum config_command c)
{
	int n = 0;

	for (int i = 0; i < FLAG_COUNT; i++)
		n += flag_known_to((enum flag_id)i, c);
	return n;
}

static int count_brief_flags(enum config_command c)
{
	size_t n;
	const struct flag_brief *b = flag_briefs(&n);
	int found = 0;

	for (size_t i = 0; i < n; i++)
		found += (b[i].commands & 1u << c) != 0;
	return found;
}

static void add_command_list(struct buf *out)
{
	buf_adds(out, "\nCommands (dptrain COMMAND --help)\n");
	for (int i = 0; i < COMMAND_COUNT; i++)
		buf_addf(out, "  %-9s %s\n", config_command_name(listed[i]), helps[listed[i]].purpose);
}

static void add_brief_flags(const struct help_page *page, enum config_command c)
{
	size_t n;
	const struct flag_brief *b = flag_briefs(&n);

	buf_adds(page->out, "\nFlags that matter most\n");
	for (size_t i = 0; i < n; i++)
		if (b[i].commands & 1u << c)
			add_flag_help(page, b[i].id, b[i].text);
}

static void add_all_flags(const struct help_page *page, enum config_command c)
{
	const char *group = "";

	for (int i = 0; i < FLAG_COUNT; i++) {
		const struct flag *f = flag_get((enum flag_id)i);

		if (!flag_known_to((enum flag_id)i, c))
			continue;
		if (strcmp(group, f->group))
			buf_addf(page->out, "\n%s\n", group = f->group);
		add_flag_help(page, (enum flag_id)i, NULL);
	}
}

static void add_conventions(const struct help_page *page, enum config_command c)
{
	static const char signals[] =
		"SIGTERM, SIGUSR1 and SIGHUP (terminal or ssh connection closed; nohup ignores it) stop a run after "
		"its step and a checkpoint, with exit code 75; --resume continues. Ctrl-C does the same with 130. A "
		"second signal, except SIGHUP, stops it at once. A step that has taken 5 s by then is given up, and "
		"the checkpoint is of the step before it; over MPI and on several GPUs the step is finished.";
	static const char names[] =
		"'-' and '_' are equal in names, as are --flag=value and --flag value. [x] is the default.";
	static const char codes[] = "Exit codes: 0 done, 1 failed while running (--test-only: the loss is not "
				    "finite), 2 bad usage or input (plan: no plan fits), 75 preempted after a "
				    "checkpoint, 130 interrupted.";
	const struct help_page prose = { page->out, 0, page->width };

	buf_addc(page->out, '\n');
	if (c == COMMAND_TRAIN)
		add_wrapped(&prose, signals);
	add_wrapped(&prose, names);
	add_wrapped(&prose, codes);
}

static void add_hint(struct buf *out, enum config_command c)
{
	buf_addf(out, "\n--help all prints all %d flags%s; --help WORD those that\nconcern WORD.\n", count_flags(c),
		 c == COMMAND_TRAIN ? " and the series of a run" : "");
}

/* Prints the help of a command: in one screen if it has many flags and no word was given, otherwise all of it. */
static void print_page(const struct config_help_opts *o, struct buf *out)
{
	const enum config_command c = o->command;
	const bool brief = !o->word && count_brief_flags(c) >= BRIEF_FLAGS_MIN;
	const struct help_page page = { out, brief ? BRIEF_COLUMN : HELP_COLUMN, o->width };

	buf_addf(out, "usage: %s\n\n%s", helps[c].usage, helps[c].about);
	if (c == COMMAND_TRAIN)
		add_command_list(out);
	if (brief)
		add_brief_flags(&page, c);
	else
		add_all_flags(&page, c);
	buf_addf(out, "\nExamples\n%s", helps[c].examples);
	if (brief) {
		add_hint(out, c);
		return;
	}
	if (c == COMMAND_TRAIN)
		add_series_help(&page);
	add_conventions(&page, c);
}

/* ---- search ---- */

static bool flag_mentions(enum flag_id id, const char *word)
{
	const struct flag *f = flag_get(id);
	const struct flag_alias *a;
	enum flag_id foreign;
	size_t n;

	word += strspn(word, "-");
	a = flag_aliases(&n);
	for (size_t i = 0; i < n; i++)
		if (a[i].id == id && a[i].name[1] && text_mentions(a[i].name, word, false))
			return true;
	return text_mentions(f->name, word, false) || text_mentions(f->help, word, true) ||
	       text_mentions(f->group, word, true) || text_mentions(f->form, word, true) ||
	       (flag_foreign(word, &foreign) && foreign == id);
}

/* Adds the flags that mention the word: those of the command or, for train, of every command, with their names. Returns
 * their number. */
static int add_found_flags(const struct help_page *page, const struct config_help_opts *o)
{
	int found = 0;

	for (int i = 0; i < FLAG_COUNT; i++) {
		const enum flag_id id = (enum flag_id)i;
		const bool own = flag_known_to(id, o->command);

		if ((!own && o->command != COMMAND_TRAIN) || !flag_mentions(id, o->word))
			continue;
		if (!own) {
			buf_adds(page->out, "dptrain ");
			for (int c = 0, n = 0; c < COMMAND_COUNT; c++)
				if (flag_known_to(id, (enum config_command)c))
					buf_addf(page->out, "%s%s", n++ ? ", " : "",
						 config_command_name((enum config_command)c));
			buf_addc(page->out, '\n');
		}
		add_flag_help(page, id, NULL);
		found++;
	}
	return found;
}

static int add_found_series(const struct help_page *page, const char *word)
{
	struct series_entry e;
	int found = 0;

	for (int i = 0; i < SERIES_COUNT + SYSTEM_SERIES; i++) {
		get_series_entry(i, &e);
		if (!text_mentions(e.key, word, false) && !text_mentions(e.help, word, true))
			continue;
		buf_adds(page->out, found++ ? "" : "\nSeries of a run\n");
		add_help_entry(page, e.key, e.help);
	}
	return found;
}

static int add_found_commands(const struct help_page *page, const char *word)
{
	int found = 0;

	for (int i = 0; i < COMMAND_COUNT; i++) {
		const struct command_help *h = &helps[listed[i]];

		if (!text_mentions(h->purpose, word, true) && !text_mentions(h->about, word, true) &&
		    !text_mentions(config_command_name(listed[i]), word, true))
			continue;
		buf_adds(page->out, found++ ? "" : "\nCommands\n");
		add_help_entry(page, config_command_name(listed[i]), h->purpose);
	}
	return found;
}

static int search_help(const struct config_help_opts *o, struct buf *out, struct err *err)
{
	const struct help_page page = { out, HELP_COLUMN, o->width };
	const char *names[FLAG_COUNT], *near;
	int found = *o->word ? add_found_flags(&page, o) : 0;

	if (*o->word && o->command == COMMAND_TRAIN)
		found += add_found_series(&page, o->word) + add_found_commands(&page, o->word);
	if (found)
		return 0;
	for (int i = 0; i < FLAG_COUNT; i++)
		names[i] = flag_get((enum flag_id)i)->name;
	near = config_nearest(o->word + strspn(o->word, "-"), names, FLAG_COUNT);
	return err_set(err, ERR_USAGE, "--help %.80s: nothing in the help of dptrain%s%s mentions it%s%s%s", o->word,
		       o->command == COMMAND_TRAIN ? "" : " ",
		       o->command == COMMAND_TRAIN ? "" : config_command_name(o->command),
		       near ? ": did you mean " : ": --help all prints everything", near ? near : "", near ? "?" : "");
}

int config_help(const struct config_help_opts *o, struct buf *out, struct err *err)
{
	if (o->word && strcmp(o->word, "all"))
		return search_help(o, out, err);
	print_page(o, out);
	return 0;
}
