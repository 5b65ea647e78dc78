/* flags.h: flags.def as a table, and conversion from text to a checked value and back. Internal to trainer/config. */
#ifndef DPT_CONFIG_FLAGS_H
#define DPT_CONFIG_FLAGS_H

#include "trainer/config/config.h"

enum flag_kind { KIND_INT, KIND_REAL, KIND_BOOL, KIND_TEXT, KIND_CHOICE, KIND_SET };

#define FLAG_TEXT_MAX 4096 /* bytes of a TEXT value */

struct flag {
	const char *name;     /* with '_' */
	enum flag_kind kind;
	const char *fallback; /* default as typed; "" none */
	double least, greatest;
	bool above;           /* least itself is excluded */
	const char *form, *group;
	unsigned commands;    /* bit per enum config_command */
	bool segment;
	const char *help;
	size_t offset;        /* in struct run_config */
};

const struct flag *flag_get(enum flag_id id);
const char *flag_word(const struct flag *f); /* the word that an INT flag accepts for -1; NULL: none */
bool flag_known_to(enum flag_id id, enum config_command c);

/* Other spellings. An alias with a value accepts none on the command line ("--bf16"). */
struct flag_alias {
	const char *name; /* one letter: a short flag */
	enum flag_id id;
	const char *value; /* NULL: needs one, like the flag */
};

const struct flag_alias *flag_aliases(size_t *ret_n);

/* Environment variables that set a flag. */
struct flag_env {
	const char *variable;
	enum flag_id id;
};

const struct flag_env *flag_envs(size_t *ret_n);

/* Finds the flag or alias of that name ('-' and '_' are equal); returns false if there is none. */
bool flag_find(const char *name, enum flag_id *ret_id, const struct flag_alias **ret_alias);

/* Finds the flag that other programs call by this name; returns false if none is known. For messages. */
bool flag_foreign(const char *name, enum flag_id *ret);

/* Parses, checks and stores a value; `label` names the place of the text in messages ("--lr", "run.json: lr"). */
int flag_store(struct run_config *cfg, enum flag_id id, const char *label, const char *text, struct err *err);

/* Adds the value as flag_store reads it; "" if it was neither given nor derived. */
void flag_text(const struct run_config *cfg, enum flag_id id, struct buf *out);

/* Writes where the value was set, for messages: "--lr", "run.json: lr", "OMP_NUM_THREADS". n bytes at ret; returns
 * ret. */
const char *flag_label(const struct run_config *cfg, enum flag_id id, char *ret, size_t n);

/* Reads a JSON configuration file; values from the command line or the environment stay. In file.c. */
int config_file_read(struct run_config *cfg, const char *path, struct err *err);

#endif
