/* SPDX-License-Identifier: Apache-2.0 */
/* cli_help.c: --help of a command and of the program, and search in both. A command's table of flags is in its
 * function: it is called with a collector set, which takes the table and ends the command. */
#include "web/cli/cli_help.h"

#include <string.h>

#include "tracker/base/terminal.h"
#include "tracker/base/text.h"

enum { HELP_COLUMN = 29, SUMMARY_COLUMN = 11, HELP_WIDTH = 108 };

/* Set by one thread before a command is called. */
static const struct flag_collector *collector;

void flag_collector_run(const struct cli_command *cmd, const struct flag_collector *c)
{
	struct err ignored = ERR_INIT;

	collector = c;
	cmd->run(0, NULL, &ignored);
	collector = NULL;
}

bool cli_flags_listed(const struct cli_command *cmd, const struct flag *table)
{
	if (collector)
		collector->take(collector->user, cmd, table);
	return collector;
}

/* Prints from the column on, with line breaks between words. */
static void print_wrapped_help(int first, const char *text)
{
	const int width = terminal_help_columns(HELP_WIDTH);
	int column = first, len;

	for (; *text; text += len + (text[len] == ' ')) {
		len = (int)strcspn(text, " ");
		if (column > first && column + 1 + len > width) {
			printf("\n%*s", first, "");
			column = first;
		}
		column += printf("%s%.*s", column > first ? " " : "", len, text);
	}
	putchar('\n');
}

static void print_flag_help(const struct flag *f)
{
	char left[64];

	snprintf(left, sizeof(left), "--%s %s", f->name, f->value);
	printf("  %-*s ", HELP_COLUMN - 3, left);
	if ((int)strlen(left) > HELP_COLUMN - 3)
		printf("\n%*s", HELP_COLUMN, "");
	print_wrapped_help(HELP_COLUMN, f->help);
}

static bool flag_mentions(const struct flag *f, const char *word)
{
	return text_mentions(f->name, word, true) || text_mentions(f->help, word, true) ||
	       text_mentions(f->value, word, true);
}

int cli_help_print(const struct cli_command *cmd, const struct flag *table, const char *word, struct err *err)
{
	const bool all = !word || !strcmp(word, "all");
	const char *plain = all ? NULL : word + strspn(word, "-");
	int found = 0;

	if (all)
		printf("usage: dptrack %s [FLAGS]%s%s\n\n%s\n\n", cmd->name, cmd->words[0] ? " " : "", cmd->words,
		       cmd->summary);
	for (const struct flag *f = table; f->name; f++)
		if (all || flag_mentions(f, plain)) {
			print_flag_help(f);
			found++;
		}
	if (all)
		printf("\nExamples\n%s", cmd->examples);
	return found ? 0 : err_set(err, ERR_USAGE, "%s --help %.80s: no flag mentions it: see dptrack %s --help",
				   cmd->name, word, cmd->name);
}

void cli_help_program(const struct cli_commands *all)
{
	const char *group = "";

	printf("dptrack records, shows and compares training runs.\n\n"
	       "usage: dptrack COMMAND [FLAGS]      dptrack COMMAND --help\n");
	for (size_t i = 0; i < all->count; i++) {
		const struct cli_command *cmd = all->items[i];

		if (strcmp(group, cmd->group))
			printf("\n%s\n", cmd->group);
		group = cmd->group;
		printf("  %-8s ", cmd->name);
		print_wrapped_help(SUMMARY_COLUMN, cmd->summary);
	}
	printf("\nExamples\n"
	       "  dptrack serve --logdir runs\n"
	       "  dptrack ls --order-by 'metrics.\"epoch/top1\".max DESC'\n"
	       "  dptrack show 1a2b\n"
	       "\n  -V, --version prints the version; --help all all flags; --help WORD what\n"
	       "  concerns WORD; help COMMAND the same as COMMAND --help\n\n"
	       "'-' and '_' are equal in names of flags, as are --flag=value and --flag value.\n"
	       "DPTRACK_TOKEN: token of the server (default: that of dptrack login).\n"
	       "DPTRACK_CA: file of certificates to trust.\n"
	       "DPTRACK_DB: address of a store in PostgreSQL.\n"
	       "DPTRACK_URL: server for sync and import.\n"
	       "Exit codes: 0 done, 1 failed while running, 2 bad usage or input.\n");
}

static void take_whole_table(void *user, const struct cli_command *cmd, const struct flag *table)
{
	struct err ignored = ERR_INIT;

	(void)user;
	cli_help_print(cmd, table, NULL, &ignored);
}

void cli_help_all(const struct cli_commands *all)
{
	const struct flag_collector c = { take_whole_table, NULL };

	cli_help_program(all);
	for (size_t i = 0; i < all->count; i++) {
		putchar('\n');
		flag_collector_run(all->items[i], &c);
	}
}

struct help_search {
	const char *word;
	int found;
};

/* Prints what mentions the word: the command's line where its name or summary does, and its flags. */
static void search_command(void *user, const struct cli_command *cmd, const struct flag *table)
{
	struct help_search *s = user;
	const bool named = text_mentions(cmd->name, s->word, true) || text_mentions(cmd->summary, s->word, true);
	int found = named;

	for (const struct flag *f = table; f->name; f++)
		found += strcmp(f->name, "help") && flag_mentions(f, s->word);
	if (!found)
		return;
	printf("%sdptrack %s: %s\n", s->found ? "\n" : "", cmd->name, cmd->summary);
	for (const struct flag *f = table; f->name; f++)
		if (strcmp(f->name, "help") && flag_mentions(f, s->word))
			print_flag_help(f);
	s->found += found;
}

int cli_help_search(const struct cli_commands *all, const char *word, struct err *err)
{
	struct help_search s = { word + strspn(word, "-"), 0 };
	const struct flag_collector c = { search_command, &s };

	for (size_t i = 0; *s.word && i < all->count; i++)
		flag_collector_run(all->items[i], &c);
	return s.found ? 0 : err_set(err, ERR_USAGE, "--help %.80s: no command mentions it: see dptrack --help", word);
}
