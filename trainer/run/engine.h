/* engine.h: everything that one rank of a run holds, and its life: open, steps, evaluations, close. */
#ifndef DPT_ENGINE_ENGINE_H
#define DPT_ENGINE_ENGINE_H

#include "trainer/config/config.h"
#include "trainer/config/lr_schedule.h"
#include "trainer/config/series.h"
#include "trainer/data/loader/loader.h"
#include "trainer/launch/seat.h"
#include "trainer/program/workers.h"
#include "trainer/run/exec.h"
#include "trainer/run/hooks.h"
#include "trainer/weights/batch.h"
#include "trainer/weights/safetensors.h"

/* What a process was started with; the ranks inherit it from the launcher. */
struct job {
	struct run_config *cfg;
	struct batch_file *batch; /* of --batch-from, or NULL */
	int argc;
	char *const *argv;
};

struct engine {
	const struct job *job;
	struct run_config *cfg;
	struct seat *seat;
	struct comm *lane[SEAT_LANES]; /* by enum stream */
	struct backend_choice choice;
	const struct backend *backend;
	void *module;
	const struct model *model;
	struct dataset *data;
	struct dataset_norm norm; /* of its pixels in this run: the set's own, or what flags or the weights' file say */
	struct sampler train, eval;
	struct loader *loader; /* of training; opened by engine_begin */
	struct workers loading[SPLIT_COUNT]; /* --workers auto: of training, of evaluation */
	struct prepared prepared;
	struct exec *exec;
	struct lr_schedule lr;
	int64_t steps_per_epoch; /* INT64_MAX when endless */
	int64_t steps_total;	 /* INT64_MAX: no limit */
	int64_t step;		 /* optimiser steps done */
	double mark_s;		 /* when the last step ended */
	struct hooks hooks;
	int64_t resident_before; /* memory.c: bytes of this process before the slabs */
	bool stats_shared;	 /* running statistics are rank 0's on every rank */
};

/* Collective. Opens communicators, backend, data; prepares every program; loads --init-from. */
int engine_open(struct engine **ret, const struct job *job, struct seat *seat, struct err *err);
void engine_close(struct engine *e); /* NULL is fine */

/* Opens model and data alone. */
int engine_open_described(struct engine **ret, const struct job *job, struct seat *seat, struct err *err);

/* Opens model and backend without data or ranks, with evaluation programs of the given sizes, and loads --init-from. */
struct engine_evaluation {
	const struct job *job;
	struct seat *seat;
	const struct model *model;
	struct model_config config;
	const int64_t *sizes; /* batches; at most SAMPLER_SHAPES_MAX */
	int n;
};

int engine_open_evaluation(struct engine **ret, const struct engine_evaluation *o, struct err *err);

/* Opens only what a plan needs: no ranks, no tensor memory, no training data read but its shape. */
int engine_open_plan(struct engine **ret, const struct job *job, struct seat *seat, struct err *err);

/* Samplers, programs and plan of e->cfg, with the data and the backend that are open. */
int engine_plan(struct engine *e, struct err *err);

int engine_begin(struct engine *e, struct err *err); /* starts the loader; the first step's clock */

bool engine_is_root(const struct engine *e);
struct precision engine_precision(const struct run_config *cfg);
bool engine_saves(const struct run_config *cfg); /* checkpoints are written, at the end if not before */

/* Steps: step.c. */
enum step_time {
	TIME_STEP,
	TIME_DATA_WAIT,
	TIME_H2D,
	TIME_FORWARD,
	TIME_BACKWARD,
	TIME_COMM_EXPOSED,
	TIME_OPTIMIZER,
	TIME_OTHER,
	TIME_COMM_TOTAL,
	TIME_COUNT
};

enum series_id step_time_series(enum step_time t);

struct step_result {
	int64_t step;	  /* from 1 */
	int64_t epoch;	  /* from 1 */
	int64_t in_epoch; /* from 1 */
	int64_t count;	  /* samples (or tokens) that the loss is the mean of, of the global batch */
	double loss;	  /* mean over the global batch */
	double loss_sum;
	double lr, grad_norm;
	double loss_scale;  /* by which the losses' gradients were multiplied in this step */
	int64_t skipped;    /* optimiser steps so far, this one included, that changed nothing: not finite */
	int64_t in_a_row;   /* of these, those since the last good one */
	int workers;	    /* loader threads from now on */
	bool workers_found;  /* … as --workers auto has settled with this step */
	bool epoch_ends;
	bool stop; /* somebody asked the job to end; all ranks see it at the same step */
	double seconds[TIME_COUNT];
};

/* 1: a step was done; 0: no more data; negative: failed. */
int step_run(struct engine *e, struct step_result *ret, struct err *err);

/* What ended this rank's part of a step of the epoch, counted from 1. */
const struct program *step_program(const struct engine *e, int64_t in_epoch);

/* Collective: ERR_CANCELED when the run cannot go on after a step that was skipped: its loss is not finite (then the rank
 * whose samples did it is named; with a loss scale that may be an overflow, and goes on), or too many were. */
int step_check(struct engine *e, const struct step_result *r, struct err *err);

/* Evaluation: evaluate.c. Collective. */
struct evaluation {
	double loss, top1, top5; /* top1, top5 in percent */
	int64_t count;
	double seconds;
	bool stopped; /* somebody asked the job to end: the numbers are not those of the whole set */
};

/* outputs: NULL, or room for the logits of every sample, [n_samples, evaluate_outputs] f64, zeroed; complete on every rank. */
int evaluate_run(struct engine *e, double *outputs, struct evaluation *ret, struct err *err);
int64_t evaluate_outputs(const struct engine *e); /* logits of one sample */

/* Makes rank 0's running statistics everybody's (nothing to do with --sync-bn or one rank). Collective. */
int evaluate_share_stats(struct engine *e, struct err *err);

/* Makes rank 0's persistent tensors everybody's. Collective. */
int evaluate_share_all(struct engine *e, struct err *err);

/* What a weights file says about itself. Texts live as long as the struct. */
struct files_meta {
	struct st_meta entry[16];
	size_t n;
	char text[1024];
};

void files_meta(const struct engine *e, bool averages, struct files_meta *ret);

/* Files: files.c. Only rank 0 writes. */
struct checkpoint;
int files_load_checkpoint(struct engine *e, const struct checkpoint *c, struct err *err); /* rank 0's tensors alone */
int files_put(void *user, const struct tensor *t, const void *data, struct err *err); /* user: a struct engine; for weights_access */
/* Before the first step: whether the files that the run is asked for can be made; at its end a no comes too late. */
int files_check(const struct run_config *cfg, struct err *err);
/* With --model-ema the averages too, beside it: x.safetensors and x-ema.safetensors. */
int files_save_weights(struct engine *e, const char *path, struct err *err);
int files_save_grads(struct engine *e, const char *path, struct err *err);
int files_save_outputs(struct engine *e, const char *path, struct err *err); /* collective */

/* Subcommands, in a rank's process: train.c, bench.c. Return the exit code; failures are left on the seat's board. */
int train_main(const struct job *job, struct seat *seat);
int bench_main(const struct job *job, struct seat *seat);

int sample_main(const struct job *job, struct err *err); /* sample.c; without ranks. 0, or a negative code */

/* Without ranks: describe.c. */
int describe_plan(const struct job *job, struct buf *out, struct err *err);
/* Trained numbers of the run's model; settles what its configuration left open. Knows neither backend nor plan. */
int describe_parameters(const struct job *job, int64_t *ret, struct err *err);
void describe_backends(struct buf *out);

/* Writes the token files of `dptrain tokenize`, and what they hold to out. */
int describe_tokenize(const struct run_config *cfg, struct buf *out, struct err *err);

#endif
