/* resolve_inside.h: helpers and functions of the resolve_*.c files. */
#ifndef DPT_CONFIG_RESOLVE_INSIDE_H
#define DPT_CONFIG_RESOLVE_INSIDE_H

#include "tracker/base/err.h"
#include "trainer/config/flags.h"

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

/* resolve_recipe.c: precision, data, length, optimiser, weights and checkpoints. */
int resolve_precision(struct run_config *cfg, struct err *err);
int resolve_data(struct run_config *cfg, struct err *err);
int resolve_length(struct run_config *cfg, struct err *err);
int resolve_optimiser(struct run_config *cfg, struct err *err);
int resolve_weights(struct run_config *cfg, struct err *err);
int resolve_checkpoints(struct run_config *cfg, struct err *err);

/* resolve_commands.c: flags of single commands, of reports and of traces. */
int resolve_bench(const struct run_config *cfg, struct err *err);
int resolve_find(struct run_config *cfg, struct err *err);
int resolve_doctor(struct run_config *cfg, struct err *err);
int resolve_report(struct run_config *cfg, struct err *err);
int resolve_trace(struct run_config *cfg, struct err *err);
int resolve_link(const struct run_config *cfg, struct err *err);

#endif
