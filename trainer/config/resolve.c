/* resolve.c: the order in which open values are derived and contradictions are refused. */
#include "trainer/config/resolve_inside.h"

static void resolve_threads(struct run_config *cfg)
{
	if (is_given(cfg, FLAG_threads))
		return;
	cfg->threads = config_cores(cfg);
	mark_derived(cfg, FLAG_threads);
}

int config_resolve(struct run_config *cfg, const struct config_world *w, struct err *err)
{
	int rc = 0;

	cfg->world = w->world < 1 ? 1 : w->world;
	cfg->local_world = w->local_world < 1 ? cfg->world : w->local_world;
	if (cfg->command == COMMAND_BACKENDS || cfg->command == COMMAND_TOKENIZE || cfg->command == COMMAND_SHARD ||
	    cfg->command == COMMAND_SWEEP)
		return 0;
	if (cfg->command == COMMAND_FIND)
		rc = resolve_find(cfg, err);
	if (!rc)
		rc = resolve_precision(cfg, err);
	if (cfg->command == COMMAND_SAMPLE) { /* one rank, no batches */
		resolve_threads(cfg);
		return rc;
	}
	if (!rc)
		rc = resolve_strategy(cfg, err);
	if (!rc)
		rc = resolve_sharing(cfg, err);
	if (!rc)
		rc = resolve_offload(cfg, err);
	if (!rc)
		rc = resolve_batch(cfg, w, err);
	if (!rc)
		rc = resolve_leaves(cfg, err);
	if (!rc)
		rc = resolve_pipeline(cfg, err);
	if (!rc)
		rc = resolve_devices(cfg, err);
	if (!rc && command_has(cfg, FLAG_data_path))
		rc = resolve_data(cfg, err);
	if (!rc && cfg->command == COMMAND_BENCH)
		rc = resolve_bench(cfg, err);
	if (!rc && command_has(cfg, FLAG_max_steps))
		rc = resolve_length(cfg, err);
	if (!rc)
		rc = resolve_optimiser(cfg, err);
	if (!rc && command_has(cfg, FLAG_report_to))
		rc = resolve_report(cfg, err);
	if (!rc && command_has(cfg, FLAG_resume))
		rc = resolve_checkpoints(cfg, err);
	if (!rc && command_has(cfg, FLAG_reset_head))
		rc = resolve_weights(cfg, err);
	if (!rc && command_has(cfg, FLAG_trace_steps))
		rc = resolve_trace(cfg, err);
	if (!rc)
		rc = resolve_link(cfg, err);
	if (!rc && cfg->command == COMMAND_DOCTOR)
		rc = resolve_doctor(cfg, err);
	if (!rc)
		resolve_threads(cfg);
	return rc;
}
