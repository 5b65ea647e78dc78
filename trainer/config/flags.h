/* SPDX-License-Identifier: Apache-2.0 */
/* flags.h: flags.def as a table, and conversion from text to a checked value and back. Internal to trainer/config. */
#ifndef DPT_CONFIG_FLAGS_H
#define DPT_CONFIG_FLAGS_H

#include "trainer/config/config.h"

enum flag_kind { KIND_INT, KIND_REAL, KIND_BOOL, KIND_TEXT, KIND_CHOICE, KIND_SET };

#define FLAG_TEXT_MAX 4096 /* bytes of a TEXT value */

struct flag {
	const char *name; /* words joined by '_' */
	enum flag_kind kind;
	const char *fallback; /* default as typed; "" none */
	double least, greatest;
	bool above; /* least itself is excluded */
	const char *form, *group;
	unsigned commands; /* bit per enum config_command */
	unsigned traits;   /* bits of enum config_trait */
	const char *help;
	size_t offset; /* in struct run_config */
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

/* The flags that a short help shows, in its order. */
struct flag_brief {
	enum flag_id id;
	unsigned commands; /* bit per enum config_command */
	const char *text;  /* one line */
};

const struct flag_brief *flag_briefs(size_t *ret_n);

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

/* config_file.c: reads a configuration file, JSON or YAML; values from the command line or the environment stay. */
int config_file_read(struct run_config *cfg, const char *path, struct err *err);

/* ---- for the files that resolve ---- */

struct label {
	char text[300];
};

/* Returns where the value was set, for messages. */
static inline const char *label_flag(const struct run_config *cfg, enum flag_id id, struct label *l)
{
	return flag_label(cfg, id, l->text, sizeof(l->text));
}

static inline void mark_derived(struct run_config *cfg, enum flag_id id)
{
	cfg->origin[id] = ORIGIN_DERIVED;
}

/* Returns true if the command has the flag. */
static inline bool command_has(const struct run_config *cfg, enum flag_id id)
{
	return flag_known_to(id, cfg->command);
}

static inline bool is_given(const struct run_config *cfg, enum flag_id id)
{
	return command_has(cfg, id) && config_given(cfg, id);
}

/* resolve_ranks.c: how ranks divide the model and its batch, in this order: the batch depends on the strategy, and what
 * follows it depends on both. */
int resolve_strategy(struct run_config *cfg, struct err *err);
int resolve_sharing(struct run_config *cfg, struct err *err);
int resolve_offload(const struct run_config *cfg, struct err *err);
int resolve_batch(struct run_config *cfg, const struct config_world *w, struct err *err);
int resolve_leaves(struct run_config *cfg, struct err *err);
int resolve_pipeline(struct run_config *cfg, struct err *err);
int resolve_devices(const struct run_config *cfg, struct err *err);

/* resolve_recipe.c: what fine-tuning a decoder sets by default, precision, data, length, optimiser, weights and
 * checkpoints. */
int resolve_tuning(struct run_config *cfg, struct err *err);
int resolve_precision(struct run_config *cfg, struct err *err);
int resolve_data(struct run_config *cfg, struct err *err);
int resolve_length(struct run_config *cfg, struct err *err);
int resolve_optimiser(struct run_config *cfg, struct err *err);
int resolve_weights(struct run_config *cfg, struct err *err);
int resolve_checkpoints(struct run_config *cfg, struct err *err);

#endif
