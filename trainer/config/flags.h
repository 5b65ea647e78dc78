/* flags.h: flags.def as a table, and the one way from text to a checked value and back. Internal to trainer/config. */
#ifndef DPT_CONFIG_FLAGS_H
#define DPT_CONFIG_FLAGS_H

#include "trainer/config/config.h"

enum flag_kind { KIND_INT, KIND_REAL, KIND_BOOL, KIND_TEXT, KIND_CHOICE, KIND_SET };

#define FLAG_TEXT_MAX 4096 /* bytes of a TEXT value */

struct flag {
	const char *name;     /* with '_' */
	enum flag_kind kind;
	const char *fallback; /* as typed; "" none */
	double least, greatest;
	bool above;           /* least itself is excluded */
	const char *form, *group;
	unsigned commands;    /* bit per enum config_command */
	bool segment;
	const char *help;
	size_t offset;        /* in struct run_config */
};

const struct flag *flag_get(enum flag_id id);
const char *flag_word(const struct flag *f); /* of an INT that may be a word, which stands for -1; else NULL */
bool flag_known_to(enum flag_id id, enum config_command c);

/* Other spellings. With a value the alias takes none itself ("--bf16"). */
struct flag_alias {
	const char *name; /* one letter: a short flag */
	enum flag_id id;
	const char *value; /* NULL: takes one like the flag */
};

const struct flag_alias *flag_aliases(size_t *ret_n);

/* Environment variables that set a flag. */
struct flag_env {
	const char *variable;
	enum flag_id id;
};

const struct flag_env *flag_envs(size_t *ret_n);

/* The flag or alias of that name ('-' and '_' alike); false when there is none. */
bool flag_find(const char *name, enum flag_id *ret_id, const struct flag_alias **ret_alias);

/* The flag that other programs call so; false when none is known. For messages. */
bool flag_foreign(const char *name, enum flag_id *ret);

/* Parses, checks and stores; `label` says where the text stands ("--lr", "run.json: lr"). */
int flag_store(struct run_config *cfg, enum flag_id id, const char *label, const char *text, struct err *err);

/* The value as flag_store would read it; "" when it was never given nor derived. */
void flag_text(const struct run_config *cfg, enum flag_id id, struct buf *out);

/* Where the value was given, for messages: "--lr", "run.json: lr", "OMP_NUM_THREADS". n bytes at ret. */
const char *flag_label(const struct run_config *cfg, enum flag_id id, char *ret, size_t n);

/* JSON configuration file; values already given on the command line or in the environment stay. file.c */
int config_file_read(struct run_config *cfg, const char *path, struct err *err);

#endif
