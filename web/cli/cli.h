/* cli.h: what a command of `dptrack` is, and what the commands share. */
#ifndef DPT_CLI_CLI_H
#define DPT_CLI_CLI_H

#include <stdbool.h>

#include "tracker/base/err.h"
#include "web/cli/cli_flags.h"
#include "web/cli/source.h"

/* One command; run gets what follows its name and returns 0 or a negative code with err filled. */
struct cli_command {
	const char *name;
	const char *group;   /* heading in --help */
	const char *words;   /* what follows the flags, for --help; "" for none */
	const char *summary; /* one line */
	int (*run)(int argc, char **argv, struct err *err);
};

/* What every reading command takes. */
struct cli_common {
	struct source_opts source;
	bool json, csv, help;
};

#define CLI_COMMON_FLAGS(c)                                                                                         \
	{ "logdir", FLAG_PATH, "DIR", "folder of runs (default: runs)", &(c)->source.logdir, 0, 0 },                \
	{ "url", FLAG_TEXT, "URL", "ask the server there instead", &(c)->source.url, 0, 0 },                        \
	{ "db", FLAG_PATH, "FILE", "the store, when it is not DIR/dptrack.db; or postgresql://USER@HOST/NAME",      \
	  &(c)->source.db, 0, 0 },                                                                                  \
	{ "json", FLAG_SWITCH, "", "JSON, as the REST API gives it", &(c)->json, 0, 0 },                            \
	{ "csv", FLAG_SWITCH, "", "CSV", &(c)->csv, 0, 0 },                                                         \
	{ "help", FLAG_SWITCH, "", "this text", &(c)->help, 0, 0 }

/* A command's line: flags of the table and at most words_max words. */
struct cli_line {
	const struct cli_command *cmd;
	const struct flag *table;
	const bool *help;        /* what --help sets */
	size_t words_max;
	struct flag_list words;  /* filled; items is freed by cli_line_done */
};

/* 0 go on, 1 --help was asked and printed, else ERR_USAGE. */
int cli_line_read(struct cli_line *line, int argc, char **argv, struct err *err);
void cli_line_done(struct cli_line *line);

/* The id of the one run that text names: an id, a beginning of one, a name, or a folder: a run's, or an experiment's,
 * whose newest run it is then; ret has room for 33 bytes. */
int cli_find_run(struct source *s, const char *text, char *ret, struct err *err);

/* The filter for runs of that name. */
void cli_filter_name(struct buf *filter, const char *name);

/* Copies the reply to stdout. */
int cli_print(struct source *s, const struct local_opts *request, struct err *err);
int cli_to_stdout(void *arg, const char *bytes, size_t n, struct err *err); /* of a struct local_sink; arg: unused */
int cli_get_json(struct source *s, const char *target, json_t **ret, struct err *err); /* GET, parsed */
int cli_get_print(struct source *s, const char *target, struct err *err);              /* GET, copied to stdout */

/* A member that is text, "" when it is not there. */
const char *cli_text(json_t *object, const char *key);

/* "90s", "30m", "12h", "7d", "8w", or "0". False: none of these. */
bool cli_span(const char *text, int64_t *ret_ms);

/* "1 run", "2 runs"; text has room for 64 bytes. */
const char *cli_count(char *text, unsigned long long n, const char *word);

/* A run's end in words: "finished", "failed: …", with what the server noticed. text has room for 256 bytes. */
const char *cli_status_words(json_t *run, char *text);

#define COMMAND(name) extern const struct cli_command cli_##name;
#include "web/cli/commands.def"
#undef COMMAND

#endif
