/* resolve_inside.h: what the parts of resolve.c share. */
#ifndef DPT_CONFIG_RESOLVE_INSIDE_H
#define DPT_CONFIG_RESOLVE_INSIDE_H

#include "tracker/base/err.h"
#include "trainer/config/flags.h"

struct label {
	char text[300];
};

/* Where the value was given, for messages. */
static inline const char *label_flag(const struct run_config *cfg, enum flag_id id, struct label *l)
{
	return flag_label(cfg, id, l->text, sizeof(l->text));
}

static inline void mark_derived(struct run_config *cfg, enum flag_id id)
{
	cfg->origin[id] = ORIGIN_DERIVED;
}

/* Whether the command has it. */
static inline bool command_has(const struct run_config *cfg, enum flag_id id)
{
	return flag_known_to(id, cfg->command);
}

static inline bool is_given(const struct run_config *cfg, enum flag_id id)
{
	return command_has(cfg, id) && config_given(cfg, id);
}

/* resolve_ranks.c: how the model and its batch are shared out. The batch follows from the strategy; what comes behind
 * it follows from both. */
int resolve_strategy(struct run_config *cfg, struct err *err);
int resolve_sharing(struct run_config *cfg, struct err *err);
int resolve_offload(const struct run_config *cfg, struct err *err);
int resolve_batch(struct run_config *cfg, const struct config_world *w, struct err *err);
int resolve_leaves(struct run_config *cfg, struct err *err);
int resolve_pipeline(struct run_config *cfg, struct err *err);
int resolve_devices(const struct run_config *cfg, struct err *err);

/* resolve_recipe.c: what is trained on, how long, by which rule, and what is kept of it. */
int resolve_precision(struct run_config *cfg, struct err *err);
int resolve_data(struct run_config *cfg, struct err *err);
int resolve_length(struct run_config *cfg, struct err *err);
int resolve_optimiser(struct run_config *cfg, struct err *err);
int resolve_weights(struct run_config *cfg, struct err *err);
int resolve_checkpoints(struct run_config *cfg, struct err *err);

/* resolve_commands.c: what single commands, and those who watch, ask for. */
int resolve_bench(const struct run_config *cfg, struct err *err);
int resolve_find(struct run_config *cfg, struct err *err);
int resolve_doctor(struct run_config *cfg, struct err *err);
int resolve_report(struct run_config *cfg, struct err *err);
int resolve_trace(struct run_config *cfg, struct err *err);
int resolve_link(const struct run_config *cfg, struct err *err);

#endif
