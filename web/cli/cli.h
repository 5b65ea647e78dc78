/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h: the type of a command of `dptrack`, and functions that the commands share. */
#ifndef DPT_CLI_CLI_H
#define DPT_CLI_CLI_H

#include <stdio.h>

#include "web/cli/source.h"

/* --- flags: --name VALUE or --name=VALUE, with - and _ equivalent ----------------------------------------------- */

enum flag_kind { FLAG_SWITCH, FLAG_TEXT, FLAG_PATH /* not empty */, FLAG_NUMBER, FLAG_LIST };

struct flag_list {
	const char **items;
	size_t count;
};

/* into is bool *, const char **, int * or struct flag_list * (its items have room for argc entries). */
struct flag {
	const char *name; /* without the dashes */
	enum flag_kind kind;
	const char *value; /* name of the value in --help */
	const char *help;
	void *into;
	int min, max; /* range of a number */
};

/* The candidate that is most similar to text; NULL when none is similar. */
const char *flags_nearest(const char *text, const char *const *candidates, size_t n);

/* --- commands --------------------------------------------------------------------------------------------------- */

/* One command; run gets the arguments after its name and returns 0 or a negative code with err filled. */
struct cli_command {
	const char *name;
	const char *group;    /* heading in --help */
	const char *words;    /* arguments after the flags, for --help; "" for none */
	const char *summary;  /* one line */
	const char *examples; /* lines for --help, each of two blanks and a command */
	int (*run)(int argc, char **argv, struct err *err);
};

/* Flags of every command that reads runs. */
struct cli_common {
	struct source_opts source;
	bool json, csv, raw, help;
};

#define CLI_COMMON_FLAGS(c)                                                                                         \
	{ "logdir", FLAG_PATH, "DIR", "folder of runs (default: DPTRACK_RUNS_DIR, or runs)", &(c)->source.logdir,  \
	  0, 0 },                                                                                                   \
	{ "url", FLAG_TEXT, "URL", "use the server at URL", &(c)->source.url, 0, 0 },                               \
	{ "db", FLAG_PATH, "FILE", "the store (default: DIR/dptrack.db); or postgresql://USER@HOST/NAME",           \
	  &(c)->source.db, 0, 0 },                                                                                  \
	{ "json", FLAG_SWITCH, "", "print JSON as in the REST API", &(c)->json, 0, 0 },                             \
	{ "csv", FLAG_SWITCH, "", "print CSV", &(c)->csv, 0, 0 },                                                   \
	{ "raw", FLAG_SWITCH, "", "with --csv: no ' before a text that a spreadsheet evaluates", &(c)->raw, 0, 0 }, \
	{ "help", FLAG_SWITCH, "", "print this help; --help WORD: what concerns WORD", &(c)->help, 0, 0 }

/* A command line: flags of the table and at most words_max words. */
struct cli_line {
	const struct cli_command *cmd;
	const struct flag *table;
	const bool *help; /* the variable that --help sets */
	size_t words_max;
	struct flag_list words; /* filled; cli_line_done frees items */
};

/* 0: continue. 1: --help was given and printed. Else ERR_USAGE. */
int cli_line_read(struct cli_line *line, int argc, char **argv, struct err *err);
void cli_line_done(struct cli_line *line);

/* Finds the one run that text names: an id, a prefix of one, a name, or a folder. An experiment's folder names its
 * newest run. ret has room for 33 bytes. */
int cli_find_run(struct source *s, const char *text, char *ret, struct err *err);

/* Appends a filter for runs with that name. */
void cli_filter_name(struct buf *filter, const char *name);

/* Copies the reply to stdout. */
int cli_print(struct source *s, const struct local_opts *request, struct err *err);
int cli_to_stdout(void *arg, const char *bytes, size_t n, struct err *err); /* for struct local_sink; arg is unused */
int cli_get_json(struct source *s, const char *target, json_t **ret, struct err *err); /* GET, parsed */
int cli_get_print(struct source *s, const char *target, struct err *err);	       /* GET, copied to stdout */

/* A request with JSON. */
struct cli_request {
	const char *method, *target; /* target NULL: out of memory */
	json_t *body;		     /* NULL: none; freed by cli_send */
	bool print;		     /* copies the reply to stdout instead of parsing it */
};

/* Sends a request. *ret (NULL: not wanted) is the parsed reply, which the caller frees; unchanged if it is printed. */
int cli_send(struct source *s, const struct cli_request *r, json_t **ret, struct err *err);
int cli_drop_reply(void *arg, const char *bytes, size_t n, struct err *err); /* for struct local_sink */

/* A string member, "" when missing. */
const char *cli_text(json_t *object, const char *key);

/* Returns the value of the tag that says which value of the metric is best, or NULL. */
const char *cli_said_best(json_t *tags, const char *key);

/* Parses "90s", "30m", "12h", "7d", "8w", or "0". Returns false for anything else. */
bool cli_span(const char *text, int64_t *ret_ms);

/* Parses the end of a token or link: "30d", "12h", "8w" from now, or the end of a day in UTC, "2027-01-31". */
int cli_expiry(const char *text, int64_t *ret_ms, struct err *err);

/* "1 run", "2 runs"; text has room for 64 bytes. */
const char *cli_count(char *text, unsigned long long n, const char *word);

/* The status of a run in words: "finished", "failed: …", with the alerts of the server. text has room for 256 bytes. */
const char *cli_status_words(json_t *run, char *text);

#define COMMAND(name) extern const struct cli_command cli_##name;
#include "web/cli/commands.def"
#undef COMMAND

/* ---- python.c ---- */

/* Replaces this process by a module of the Python package, run with argc arguments: by DPTRACK_PYTHON, which the
 * command of the wheel sets, else python3. Returns only if that cannot be started; a Python without the module prints
 * how to install it with the extra ("[mcp]", or ""), and exits with 2. */
int python_run(const char *module, const char *extra, int argc, const char *const *argv, struct err *err);

/* ---- table.c ----
 * Tables of text for people: aligned columns, numbers to the right. One thread. */

struct table;

struct table *table_new(void);
void table_free(struct table *t); /* NULL is fine */

void table_column(struct table *t, const char *title, bool right); /* before the first cell */
void table_columns(struct table *t, const char *titles); /* by commas, after > right-aligned; t may be NULL */
void table_cell(struct table *t, const char *text);		   /* row by row; NULL: a dash */
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Prints titles and rows; as CSV when csv is set. On a terminal cells and columns that do not fit into a line are cut
 * or hidden, with a note. */
/* Of CSV a text that a spreadsheet would evaluate gets a ' before it, unless raw. */
enum table_form { TABLE_TEXT, TABLE_CSV, TABLE_CSV_RAW };
void table_print(struct table *t, FILE *out, enum table_form form);
enum table_form cli_table_form(const struct cli_common *c);

/* Writes n bytes of untrusted text to a terminal. Characters that move the cursor, start a line or change the direction
 * of text become blanks. */
void table_text(FILE *out, const char *text, size_t n);

/* Formats a value for people into a buffer of at least 32 bytes. */
const char *table_number(char *text, double v);		/* 5 significant digits */
const char *table_exact(char *text, double v);		/* the fewest digits that read back the same */
const char *table_time(char *text, int64_t ms);		/* UTC, as a filter reads it */
const char *table_duration(char *text, double seconds); /* 1 h 02 min */

#endif
