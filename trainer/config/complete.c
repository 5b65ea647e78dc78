/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c: the candidates that a shell offers for a word of a command line of dptrain, from the table of flags and
 * the folder of runs. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/run_folders.h"
#include "trainer/config/flags.h"

#define CANDIDATES_MAX 500
#define NAME_BYTES 64

struct completion {
	struct buf *out;
	const char *word;
	const char *runs_dir;
	const char *about; /* describes the values */
	int count;
};

/* Adds the candidate if it begins with the word. Returns false once there are enough. */
static bool add_candidate(struct completion *c, const char *text, const char *about)
{
	if (!strncmp(text, c->word, strlen(c->word)) && !strpbrk(text, "\t\n")) {
		buf_addf(c->out, "%s\t%s\n", text, about);
		c->count++;
	}
	return c->count < CANDIDATES_MAX;
}

static bool offer_experiment(void *user, const struct run_folder_entry *e)
{
	return add_candidate(user, e->experiment, "experiment");
}

static bool offer_run_name(void *user, const struct run_folder_entry *e)
{
	char name[256];

	snprintf(name, sizeof(name), "%.*s", (int)(e->id - e->run - 1), e->run);
	return add_candidate(user, name, e->experiment);
}

static bool offer_run_path(void *user, const struct run_folder_entry *e)
{
	struct completion *c = user;
	char path[1000];
	const int n = snprintf(path, sizeof(path), "%s/%s/%s", c->runs_dir, e->experiment, e->run);

	return n >= (int)sizeof(path) || add_candidate(c, path, "run");
}

/* Offers the parts of a list: "auto|ref|cpu". digits: only those with a digit, as models have. */
static void offer_parts(struct completion *c, const char *list, const char *between, bool digits)
{
	char one[NAME_BYTES];

	for (size_t n; *list; list += n) {
		n = strcspn(list, between);
		snprintf(one, sizeof(one), "%.*s", (int)n, list);
		if (n && n < sizeof(one) && (!digits || (isalpha((unsigned char)*one) && strpbrk(one, "0123456789"))))
			add_candidate(c, one, c->about);
		n += strspn(list + n, between);
	}
}

static const char *dash_flag_name(const char *name, char *text)
{
	snprintf(text, NAME_BYTES, "--%s", name);
	for (char *at = text; *at; at++)
		*at = *at == '_' ? '-' : *at;
	return text;
}

static void offer_flag_value(struct completion *c, enum flag_id id)
{
	const struct flag *f = flag_get(id);

	c->about = f->name;
	if (f->kind == KIND_CHOICE || f->kind == KIND_SET)
		offer_parts(c, f->form, "|", false);
	else if (id == FLAG_model)
		offer_parts(c, f->help, " ,;()", true);
	else if (id == FLAG_experiment)
		run_folders_each(c->runs_dir, false, offer_experiment, c);
	else if (id == FLAG_run_name)
		run_folders_each(c->runs_dir, true, offer_run_name, c);
	else if (id == FLAG_resume || id == FLAG_run || id == FLAG_init_from)
		run_folders_each(c->runs_dir, true, offer_run_path, c);
	if (strstr(f->form, "|auto") || flag_word(f) || id == FLAG_resume)
		add_candidate(c, flag_word(f) ? flag_word(f) : "auto", f->name);
	if (strstr(f->form, "FILE") || strstr(f->form, "PATH") || strstr(f->form, "SHARDS"))
		buf_adds(c->out, ":files\n");
	else if (strstr(f->form, "DIR"))
		buf_adds(c->out, ":folders\n");
}

static void offer_flag_names(struct completion *c, enum config_command command)
{
	char text[NAME_BYTES];
	size_t n;
	const struct flag_alias *a = flag_aliases(&n);

	for (int i = 0; i < FLAG_COUNT; i++)
		if (flag_known_to((enum flag_id)i, command))
			add_candidate(c, dash_flag_name(flag_get((enum flag_id)i)->name, text),
				      flag_get((enum flag_id)i)->help);
	for (size_t i = 0; i < n; i++)
		if (a[i].name[1] && flag_known_to(a[i].id, command))
			add_candidate(c, dash_flag_name(a[i].name, text), flag_get(a[i].id)->help);
	add_candidate(c, "--help", "print the help; --help all: every flag");
	add_candidate(c, "--version", "print the version");
}

/* Returns true if the word is a flag that the next word is the value of. */
static bool wants_value(const char *word, enum flag_id *ret)
{
	const struct flag_alias *alias;
	const size_t dashes = strspn(word, "-");

	return dashes && !strchr(word, '=') && flag_find(word + dashes, ret, &alias) && !(alias && alias->value) &&
	       flag_get(*ret)->kind != KIND_BOOL;
}

void config_complete(int argc, char *const argv[], struct buf *out)
{
	struct completion c = { .out = out, .word = argc ? argv[argc - 1] : "",
				.runs_dir = run_folders_named(argc, argv) };
	enum config_command command = COMMAND_TRAIN;
	const bool help = argc == 2 && !strcmp(argv[0], "help");
	enum flag_id id;

	for (int i = 0; i < COMMAND_COUNT; i++) {
		if (argc > 1 && !strcmp(argv[0], config_command_name((enum config_command)i)))
			command = (enum config_command)i;
		if (argc < 2 || help)
			add_candidate(&c, config_command_name((enum config_command)i), "command");
	}
	if (argc < 2)
		add_candidate(&c, "help", "command");
	if (help)
		return;
	if (argc > 1 && wants_value(argv[argc - 2], &id))
		offer_flag_value(&c, id);
	else if (*c.word == '-')
		offer_flag_names(&c, command);
	else if (command == COMMAND_FIND && argc == 2)
		offer_parts(&c, "lr|batch", "|", false);
	else if (command == COMMAND_SWEEP && argc > 1)
		buf_adds(out, ":files\n");
}
