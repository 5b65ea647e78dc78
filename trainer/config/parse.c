/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c: reads command line and environment into a configuration; each value is checked alone. An unknown name gets
 * the nearest one, by edit distance (Damerau-Levenshtein), as a suggestion. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/arena.h"
#include "trainer/config/flags.h"

static const char *const commands[COMMAND_COUNT] = {
	[COMMAND_TRAIN] = "train",   [COMMAND_CONFIG] = "config", [COMMAND_BACKENDS] = "backends",
	[COMMAND_PLAN] = "plan",     [COMMAND_BENCH] = "bench",	  [COMMAND_TOKENIZE] = "tokenize",
	[COMMAND_SAMPLE] = "sample", [COMMAND_SHARD] = "shard",	  [COMMAND_DOCTOR] = "doctor",
	[COMMAND_SWEEP] = "sweep",   [COMMAND_FIND] = "find",	  [COMMAND_INSPECT] = "inspect",
	[COMMAND_MERGE] = "merge",   [COMMAND_EXPORT] = "export",
};

bool config_finds(const struct run_config *cfg, const char *what)
{
	return cfg->command == COMMAND_FIND && cfg->word && !strcmp(cfg->word, what);
}

struct flag_parser {
	struct run_config *cfg;
	char *const *argv;
	int argc, at;
	const char *spelled[FLAG_COUNT]; /* how it was last typed */
	bool fixed[FLAG_COUNT];		 /* … by an alias that has a value */
};

struct typed_flag {
	enum flag_id id;
	const struct flag_alias *alias; /* NULL: the flag's own name */
	const char *text;		/* "--batch-size" */
};

const char *config_command_name(enum config_command c)
{
	return commands[c];
}

/* Writes the name as typed: "--batch-size". */
static const char *spell_flag(const char *name, char *text, size_t n)
{
	snprintf(text, n, "--%s", name);
	for (char *at = text; *at; at++)
		if (*at == '_')
			*at = '-';
	return text;
}

/* Suggests our name for a flag of another program, or the nearest flag of this command. */
static int report_unknown_flag(const struct flag_parser *p, const char *typed, struct err *err)
{
	const char *names[FLAG_COUNT + 16], *near;
	size_t n = 0, n_aliases;
	const struct flag_alias *a = flag_aliases(&n_aliases);
	enum flag_id id;
	char text[80];

	if (flag_foreign(typed + strspn(typed, "-"), &id) && flag_known_to(id, p->cfg->command))
		return err_set(err, ERR_USAGE, "unknown flag %.80s; dptrain calls it %s", typed,
			       spell_flag(flag_get(id)->name, text, sizeof(text)));
	for (int i = 0; i < FLAG_COUNT; i++)
		if (flag_known_to((enum flag_id)i, p->cfg->command))
			names[n++] = flag_get((enum flag_id)i)->name;
	for (size_t i = 0; i < n_aliases; i++)
		if (flag_known_to(a[i].id, p->cfg->command) && a[i].name[1])
			names[n++] = a[i].name;
	names[n++] = "help";
	names[n++] = "version";
	near = config_nearest(typed + strspn(typed, "-"), names, n);
	if (!near)
		return err_set(err, ERR_USAGE, "unknown flag %.80s; see `dptrain %s --help`", typed,
			       commands[p->cfg->command]);
	return err_set(err, ERR_USAGE, "unknown flag %.80s; did you mean %s?", typed,
		       spell_flag(near, text, sizeof(text)));
}

static int report_other_command(const struct flag_parser *p, enum flag_id id, const char *typed, struct err *err)
{
	char list[80] = "";
	size_t n = 0;

	for (int c = 0; c < COMMAND_COUNT; c++)
		if (flag_known_to(id, (enum config_command)c) && n < sizeof(list))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", commands[c]);
	return err_set(err, ERR_USAGE, "%.80s belongs to `dptrain %s`, not to `dptrain %s`", typed, list,
		       commands[p->cfg->command]);
}

static bool flag_value_equals(struct run_config *cfg, enum flag_id id, const char *text)
{
	struct buf b;
	bool same;

	buf_init(&b, FLAG_TEXT_MAX + 1);
	flag_text(cfg, id, &b);
	same = !buf_failed(&b) && b.data && !strcmp(b.data, text);
	buf_done(&b);
	return same;
}

/* Stores one flag as typed. The last value of a repeated flag wins, but "--bf16 --precision fp32" is refused. */
static int set_typed_flag(struct flag_parser *p, const struct typed_flag *t, const char *value, struct err *err)
{
	const enum flag_id id = t->id;
	const char *typed = t->text;
	bool fixed = t->alias && t->alias->value;
	int rc;

	if (p->spelled[id] && (fixed || p->fixed[id]) && !flag_value_equals(p->cfg, id, value))
		return err_set(err, ERR_USAGE, "%.60s contradicts %.60s", typed, p->spelled[id]);
	rc = flag_store(p->cfg, id, typed, value, err);
	if (rc)
		return rc;
	p->cfg->origin[id] = ORIGIN_FLAG;
	p->spelled[id] =
		arena_printf(p->cfg->arena, fixed || flag_get(id)->kind == KIND_BOOL ? "%s" : "%s %s", typed, value);
	p->fixed[id] = fixed;
	return 0;
}

/* Finds the value of a flag: the text after '=', or the next argument. */
static int take_flag_value(struct flag_parser *p, const char *typed, const char *equals, const char **ret,
			   struct err *err)
{
	const char *next = p->at < p->argc ? p->argv[p->at] : NULL;

	if (equals) {
		*ret = equals + 1;
		return 0;
	}
	if (!next || !strncmp(next, "--", 2))
		return err_set(err, ERR_USAGE, "%.80s needs a value", typed);
	p->at++;
	*ret = next;
	return 0;
}

static int parse_bool_flag(struct flag_parser *p, const struct typed_flag *t, const char *equals, bool no,
			   struct err *err)
{
	if (no && equals)
		return err_set(err, ERR_USAGE, "%.80s takes no value", t->text);
	return set_typed_flag(p, t, no ? "no" : equals ? equals + 1 : "yes", err);
}

/* Parses "--name", "--name=value", "--name value" and "--no-name". */
static int parse_long(struct flag_parser *p, const char *arg, struct err *err)
{
	const char *equals = strchr(arg, '='), *value = NULL;
	const struct flag_alias *alias;
	enum flag_id id;
	char *typed = arena_printf(p->cfg->arena, "%.*s", equals ? (int)(equals - arg) : (int)strlen(arg), arg);
	bool no = false;
	int rc;

	if (!flag_find(typed + 2, &id, &alias) || (alias && !alias->name[1])) {
		no = (!strncmp(typed, "--no-", 5) || !strncmp(typed, "--no_", 5)) &&
		     flag_find(typed + 5, &id, &alias) && !alias && flag_get(id)->kind == KIND_BOOL;
		if (!no)
			return report_unknown_flag(p, typed, err);
	}
	if (!flag_known_to(id, p->cfg->command))
		return report_other_command(p, id, typed, err);
	if (!alias && flag_get(id)->kind == KIND_BOOL)
		return parse_bool_flag(p, &(struct typed_flag){ id, NULL, typed }, equals, no, err);
	if (alias && alias->value)
		return equals ? err_set(err, ERR_USAGE, "%.80s takes no value", typed)
			      : set_typed_flag(p, &(struct typed_flag){ id, alias, typed }, alias->value, err);
	if (id == FLAG_compare_with && !equals && p->at < p->argc) { /* its value is flags */
		value = p->argv[p->at++];
		rc = 0;
	} else {
		rc = take_flag_value(p, typed, equals, &value, err);
	}
	return rc ? rc : set_typed_flag(p, &(struct typed_flag){ id, alias, typed }, value, err);
}

/* Parses "-b 128" and "-b128". */
static int parse_short(struct flag_parser *p, const char *arg, struct err *err)
{
	const char letter[2] = { arg[1], 0 }, *value = arg + 2;
	const struct flag_alias *alias;
	enum flag_id id;
	char typed[3] = { '-', arg[1], 0 };
	int rc;

	if (!flag_find(letter, &id, &alias) || !alias)
		return report_unknown_flag(p, arg, err);
	if (!flag_known_to(id, p->cfg->command))
		return report_other_command(p, id, typed, err);
	rc = *value ? 0 : take_flag_value(p, typed, NULL, &value, err);
	return rc ? rc : set_typed_flag(p, &(struct typed_flag){ id, alias, typed }, value, err);
}

/* Reads what --help is wanted for: a command where none was named, then a word. */
static void read_help_words(struct flag_parser *p)
{
	const char *word = p->at < p->argc ? p->argv[p->at] : NULL;

	p->cfg->help = true;
	for (int c = 0; word && p->at == 2 && c < COMMAND_COUNT; c++)
		if (!strcmp(word, commands[c])) {
			p->cfg->command = (enum config_command)c;
			word = ++p->at < p->argc ? p->argv[p->at] : NULL;
			break;
		}
	if (word && strcmp(word, "--help") != 0 && strcmp(word, "-h") != 0)
		p->cfg->help_word = word;
}

/* Reads the subcommand; without one it is train. */
static int parse_command(struct flag_parser *p, struct err *err)
{
	const char *word = p->argc > 1 ? p->argv[1] : NULL, *near;
	char all[200] = "";
	size_t n = 0;

	p->at = 1;
	if (!word || *word == '-')
		return 0;
	for (int c = 0; c < COMMAND_COUNT; c++)
		if (!strcmp(word, commands[c])) {
			p->cfg->command = (enum config_command)c;
			p->at = 2;
			return 0;
		}
	p->cfg->version = !strcmp(word, "version");
	if (p->cfg->version)
		return 0;
	if (!strcmp(word, "help")) {
		p->at = 2;
		read_help_words(p);
		return 0;
	}
	near = config_nearest(word, commands, COMMAND_COUNT);
	for (int c = 0; c < COMMAND_COUNT && n < sizeof(all); c++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", c ? ", " : "", commands[c]);
	return err_set(err, ERR_USAGE, "unknown command '%.60s'; %s%s%s", word,
		       near ? "did you mean " : "expected one of: ", near ? near : all,
		       near ? "?" : " (--model NAME selects a network)");
}

static bool command_takes_word(const struct run_config *cfg)
{
	return (cfg->command == COMMAND_SWEEP || cfg->command == COMMAND_FIND) && !cfg->word;
}

/* Reads the arguments after the command: flags, its operand, and requests for help. */
static int parse_arguments(struct flag_parser *p, struct err *err)
{
	int rc = 0;

	while (!rc && p->at < p->argc && !p->cfg->help && !p->cfg->version) {
		const char *arg = p->argv[p->at++];

		if (!strcmp(arg, "--help") || !strcmp(arg, "-h") || !strncmp(arg, "--help=", 7)) {
			read_help_words(p);
			p->cfg->help_word = arg[1] == '-' && arg[6] ? arg + 7 : p->cfg->help_word;
		} else if (!strcmp(arg, "--version") || !strcmp(arg, "-V"))
			p->cfg->version = true;
		else if (!strncmp(arg, "--", 2) && arg[2])
			rc = parse_long(p, arg, err);
		else if (arg[0] == '-' && arg[1] && arg[1] != '-')
			rc = parse_short(p, arg, err);
		else if (command_takes_word(p->cfg))
			p->cfg->word = arg;
		else
			rc = err_set(err, ERR_USAGE, "unexpected argument '%.80s'; flags begin with --", arg);
	}
	return rc;
}

/* Sets flags from environment variables, unless the command line has set them. */
static int read_environment(struct run_config *cfg, struct err *err)
{
	size_t n;
	const struct flag_env *e = flag_envs(&n);

	for (size_t i = 0; i < n; i++) {
		const char *value = getenv(e[i].variable);
		char text[FLAG_TEXT_MAX + 2];
		int rc;

		if (!value || !*value || cfg->origin[e[i].id] != ORIGIN_DEFAULT ||
		    !flag_known_to(e[i].id, cfg->command))
			continue;
		/* OMP_NUM_THREADS may be a list by nesting level: use the first. */
		snprintf(text, sizeof(text), "%.*s",
			 e[i].id == FLAG_threads ? (int)strcspn(value, ",") : (int)strlen(value), value);
		rc = flag_store(cfg, e[i].id, e[i].variable, text, err);
		if (rc)
			return rc;
		cfg->origin[e[i].id] = ORIGIN_ENVIRONMENT;
	}
	return 0;
}

/* Refuses typed flags that would have no effect. */
static int check_needed_flags(struct run_config *cfg, struct err *err)
{
	const struct {
		enum flag_id id;
		bool works;
		const char *what;
	} flags[] = {
#define NEEDS(field, condition, what_) { FLAG_##field, condition, what_ },
#include "trainer/config/needs.def"
#undef NEEDS
	};
	struct label l;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		const enum flag_id id = flags[i].id;

		if (flags[i].works || cfg->origin[id] != ORIGIN_FLAG ||
		    (flag_get(id)->kind == KIND_BOOL && flag_value_equals(cfg, id, "no")))
			continue;
		return err_set(err, ERR_USAGE, "%s: needs %s, otherwise it has no effect", label_flag(cfg, id, &l),
			       flags[i].what);
	}
	return 0;
}

static int set_default(struct run_config *cfg, enum flag_id id, struct err *err)
{
	const struct flag *f = flag_get(id);

	return *f->fallback ? flag_store(cfg, id, f->name, f->fallback, err) : 0;
}

static int set_defaults(struct run_config *cfg, struct err *err)
{
	int rc = 0;

	for (int i = 0; !rc && i < FLAG_COUNT; i++)
		rc = set_default(cfg, (enum flag_id)i, err);
	return rc;
}

int config_take_back(struct run_config *cfg, enum flag_id id, struct err *err)
{
	static const size_t bytes[] = { [KIND_INT] = sizeof(FLAG_TYPE_INT),	  [KIND_REAL] = sizeof(FLAG_TYPE_REAL),
					[KIND_BOOL] = sizeof(FLAG_TYPE_BOOL),	  [KIND_TEXT] = sizeof(FLAG_TYPE_TEXT),
					[KIND_CHOICE] = sizeof(FLAG_TYPE_CHOICE), [KIND_SET] = sizeof(FLAG_TYPE_SET) };
	const struct flag *f = flag_get(id);

	memset((char *)cfg + f->offset, 0, bytes[f->kind]);
	cfg->origin[id] = ORIGIN_DEFAULT;
	return set_default(cfg, id, err);
}

static struct run_config *config_new(void)
{
	struct arena *a = arena_new();
	struct run_config *cfg = arena_alloc(a, sizeof(*cfg));

	cfg->arena = a;
	return cfg;
}

void config_free(struct run_config *cfg)
{
	if (cfg)
		arena_free(cfg->arena);
}

int config_parse(struct run_config **ret, int argc, char *const argv[], struct err *err)
{
	struct run_config *cfg = config_new();
	struct flag_parser p = { .cfg = cfg, .argc = argc, .argv = argv };
	int rc;

	rc = set_defaults(cfg, err);
	if (!rc)
		rc = parse_command(&p, err);
	if (!rc)
		rc = parse_arguments(&p, err);
	if (!rc && !cfg->help && !cfg->version)
		rc = read_environment(cfg, err);
	if (!rc && cfg->config && !cfg->help && !cfg->version)
		rc = config_file_read(cfg, cfg->config, err);
	if (!rc && !cfg->help && !cfg->version)
		rc = check_needed_flags(cfg, err);
	if (rc) {
		config_free(cfg);
		return rc;
	}
	*ret = cfg;
	return 0;
}
