/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c: the candidates that a shell offers for a word of a command line of dptrack, from the table of commands,
 * their tables of flags, and the folder of runs. */
#include <ctype.h>
#include <string.h>

#include "tracker/base/run_folders.h"
#include "web/cli/cli_help.h"

enum { CANDIDATES_MAX = 500 };

struct completion {
	int argc; /* words after the program's name; the last one is completed */
	char **argv;
	const char *word;
	const char *logdir;
	const struct cli_command *cmd;
	int count;
};

/* Prints the candidate if it begins with the word. Returns false once there are enough. */
static bool print_candidate(struct completion *c, const char *text, const char *about)
{
	if (!strncmp(text, c->word, strlen(c->word)) && !strpbrk(text, "\t\n")) {
		printf("%s\t%s\n", text, about);
		c->count++;
	}
	return c->count < CANDIDATES_MAX;
}

static bool offer_experiment(void *user, const struct run_folder_entry *e)
{
	return print_candidate(user, e->experiment, "experiment");
}

/* Offers the run's folder, which names it alone, and its id where that was begun. */
static bool offer_run(void *user, const struct run_folder_entry *e)
{
	struct completion *c = user;
	const int before = c->count;

	if (!print_candidate(c, e->run, e->experiment))
		return false;
	return c->count > before || !*c->word || print_candidate(c, e->id, e->run);
}

static void offer_words(struct completion *c, const char *words)
{
	char one[64];

	for (size_t n; *words; words += n) {
		n = strcspn(words, " |");
		snprintf(one, sizeof(one), "%.*s", (int)n, words);
		if (n && islower((unsigned char)one[0]))
			print_candidate(c, one, c->cmd->name);
		n += strspn(words + n, " |");
	}
}

/* Offers what a value can be, by its name in --help. */
static void offer_value(struct completion *c, const char *flag, const char *value)
{
	if (!strcmp(flag, "experiment"))
		run_folders_each(c->logdir, false, offer_experiment, c);
	else if (!strcmp(value, "SCOPE"))
		offer_words(c, "read write admin");
	else if (strstr(value, "DIR"))
		puts(":folders");
	else if (strstr(value, "FILE") || strstr(value, "PLACE") || strstr(value, "PATH"))
		puts(":files");
}

/* Offers arguments that are no flags, by their names in --help. */
static void offer_arguments(struct completion *c)
{
	const char *words = c->cmd->words;

	if (c->argc == 2)
		offer_words(c, words);
	if (strstr(words, "RUN"))
		run_folders_each(c->logdir, true, offer_run, c);
	if (strstr(words, "EXPERIMENT"))
		run_folders_each(c->logdir, false, offer_experiment, c);
	if (strstr(words, "PATH") || strstr(words, "FILE") || strstr(words, "FROM"))
		puts(":files");
}

/* Offers flags, the value of the flag before the word, or arguments. */
static void offer_by_table(void *user, const struct cli_command *cmd, const struct flag *table)
{
	struct completion *c = user;
	const char *before = c->argc > 2 && !strncmp(c->argv[c->argc - 2], "--", 2) ? c->argv[c->argc - 2] + 2 : "";
	char flag[80];

	c->cmd = cmd;
	for (const struct flag *f = table; f->name; f++)
		if (f->kind != FLAG_SWITCH && !strcmp(f->name, before)) {
			offer_value(c, f->name, f->value);
			return;
		}
	if (c->word[0] != '-') {
		offer_arguments(c);
		return;
	}
	for (const struct flag *f = table; f->name; f++) {
		snprintf(flag, sizeof(flag), "--%s", f->name);
		print_candidate(c, flag, f->help);
	}
}

void cli_complete(const struct cli_commands *all, int argc, char **argv)
{
	struct completion c = { .argc = argc, .argv = argv, .word = argc ? argv[argc - 1] : "",
				.logdir = run_folders_named(argc, argv) };
	const struct flag_collector collect = { offer_by_table, &c };
	const bool help = argc > 1 && !strcmp(argv[0], "help");

	if (argc < 2 || (help && argc == 2)) {
		for (size_t i = 0; i < all->count; i++)
			print_candidate(&c, all->items[i]->name, all->items[i]->summary);
		if (help)
			return;
		print_candidate(&c, "help", "print the help of a command");
		if (c.word[0] == '-') {
			print_candidate(&c, "--help", "print the help");
			print_candidate(&c, "--version", "print the version");
		}
		return;
	}
	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(argv[0], all->items[i]->name))
			flag_collector_run(all->items[i], &collect);
}
