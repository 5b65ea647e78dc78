/* SPDX-License-Identifier: Apache-2.0 */
/* config.h: the configuration of a run: every value of flags.def, resolved, and its origin.
 *
 * Precedence, highest first: command line, environment, --config file, default. config_parse reads them and checks each
 * value alone. config_resolve, once the number of ranks is known, derives open values and refuses contradictions. Both
 * fail with ERR_USAGE and one line. Nothing here prints, opens data or knows models.
 *
 *	struct run_config *cfg;
 *	rc = config_parse(&cfg, argc, argv, &err);
 *	…find out world and local_world…
 *	rc = rc ? rc : config_resolve(cfg, &(struct config_world){ .world = 2, .local_world = 2 }, &err);
 */
#ifndef DPT_CONFIG_CONFIG_H
#define DPT_CONFIG_CONFIG_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

enum config_command {
	COMMAND_TRAIN,
	COMMAND_CONFIG,
	COMMAND_BACKENDS,
	COMMAND_PLAN,
	COMMAND_BENCH,
	COMMAND_TOKENIZE,
	COMMAND_SAMPLE,
	COMMAND_SHARD,
	COMMAND_DOCTOR,
	COMMAND_SWEEP,
	COMMAND_FIND,
	COMMAND_INSPECT,
	COMMAND_MERGE,
	COMMAND_EXPORT,
	COMMAND_COUNT
};

const char *config_command_name(enum config_command c);

/* Values of CHOICE flags, in the order of their form in flags.def. Where a registry owns the words (strategy, opt), the
 * value is the number of the line in the registry's .def, from 0. */
enum config_act { CONFIG_ACT_RELU, CONFIG_ACT_GELU };
enum config_lr_scheduler {
	CONFIG_LR_COSINE,
	CONFIG_LR_STEP,
	CONFIG_LR_LINEAR,
	CONFIG_LR_POLYNOMIAL,
	CONFIG_LR_CONSTANT,
	CONFIG_LR_WSD
};
enum config_backend { CONFIG_BACKEND_AUTO, CONFIG_BACKEND_REF, CONFIG_BACKEND_CPU, CONFIG_BACKEND_CUDA };
enum config_precision { CONFIG_PRECISION_FP32, CONFIG_PRECISION_BF16, CONFIG_PRECISION_FP16, CONFIG_PRECISION_FP64 };
#define CONFIG_SCALE_DYNAMIC (-1) /* loss_scale */
enum config_opt_level { CONFIG_LEVEL_O0, CONFIG_LEVEL_O1, CONFIG_LEVEL_O2, CONFIG_LEVEL_O3 };
enum config_recompute { CONFIG_RECOMPUTE_NONE, CONFIG_RECOMPUTE_SELECTIVE, CONFIG_RECOMPUTE_FULL };
enum config_conv_algo { CONFIG_CONV_AUTO, CONFIG_CONV_DIRECT };
enum config_fp32_matmul { CONFIG_FP32_HIGHEST, CONFIG_FP32_HIGH };
enum config_pipeline { CONFIG_PIPELINE_1F1B, CONFIG_PIPELINE_GPIPE };
enum config_unit { CONFIG_UNIT_BLOCK, CONFIG_UNIT_LAYER };
enum config_shuffle { CONFIG_SHUFFLE_GLOBAL, CONFIG_SHUFFLE_WINDOW, CONFIG_SHUFFLE_TABLE, CONFIG_SHUFFLE_NONE };
enum config_order { CONFIG_ORDER_SHUFFLED, CONFIG_ORDER_KEPT };
enum config_pack { CONFIG_PACK_STREAM, CONFIG_PACK_DOCUMENTS, CONFIG_PACK_NONE };
enum config_gguf { CONFIG_GGUF_F16, CONFIG_GGUF_BF16, CONFIG_GGUF_Q8_0 };
enum config_comm { CONFIG_COMM_AUTO, CONFIG_COMM_SHM, CONFIG_COMM_UCX, CONFIG_COMM_MPI };
enum config_auto_augment { CONFIG_AUTO_AUGMENT_NONE, CONFIG_AUTO_AUGMENT_RA, CONFIG_AUTO_AUGMENT_TA_WIDE };
enum config_profile { CONFIG_PROFILE_NONE, CONFIG_PROFILE_OP, CONFIG_PROFILE_NODE, CONFIG_PROFILE_BLOCK };
enum config_goal { CONFIG_GOAL_SPEED, CONFIG_GOAL_MEMORY, CONFIG_GOAL_RANKS };
enum config_dump { CONFIG_DUMP_NONE, CONFIG_DUMP_GRAPH, CONFIG_DUMP_PLAN, CONFIG_DUMP_SUMMARY };

/* Bits of the SET flag augment. */
enum config_augment { CONFIG_AUGMENT_CROP = 1, CONFIG_AUGMENT_FLIP = 2, CONFIG_AUGMENT_RRC = 4 };

/* Bits of the SET flag eval_transform. */
enum config_eval { CONFIG_EVAL_RESIZE = 1, CONFIG_EVAL_CENTER_CROP = 2 };

enum config_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG, ORIGIN_DERIVED };

const char *config_origin_name(enum config_origin o);

enum flag_id {
#define FLAG(field, ...) FLAG_##field,
#include "trainer/config/flags.def"
#undef FLAG
	FLAG_COUNT
};

#define FLAG_TYPE_INT int64_t
#define FLAG_TYPE_REAL double
#define FLAG_TYPE_BOOL bool
#define FLAG_TYPE_TEXT const char * /* NULL when not given; in the config's arena */
#define FLAG_TYPE_CHOICE int
#define FLAG_TYPE_SET unsigned

struct decoder_config;

struct run_config {
	struct arena *arena;
	enum config_command command;
	bool help, version;    /* print config_help or the version and exit 0; nothing else was checked */
	const char *help_word; /* with help: "all" or a word to search; NULL: none */

	/* One member per line of flags.def. After config_resolve these are final: batch_size (largest micro-batch of a
	 * rank), global_batch_size, grad_accum_steps, strategy, threads, precision, backend (stays auto), max_steps
	 * (0: no limit), epochs (0: no limit). workers: -1 is auto. Values from files are set between config_resolve
	 * and the start of the ranks (runs_dir, init_from, the model and its sizes: config_put). Values from data and
	 * model are set in each rank while these are opened (classes, in_channels, image_size, seq_len, the sizes of a
	 * language model, augment: config_settle, by trainer/program/workload.h); after that the configuration is
	 * final. report_to: a URL (also from DPTRACK_URL), "none" for no server, or NULL. */
#define FLAG(field, kind, ...) FLAG_TYPE_##kind field;
#include "trainer/config/flags.def"
#undef FLAG

	/* What is known of the weights that --test-only evaluates, in arena. NULL, 0: unknown. */
	struct config_trained {
		const char *path;
		const char *class_names; /* JSON list */
		const char *tokenizer;	 /* "bytes", or the SHA-256 of a BPE's files */
		int64_t classes;
	} trained;
	/* Of --init-from (trainer/models/decoder.h), in arena; NULL: another model. */
	const struct decoder_config *decoder;
	const char *word;	/* operand after the command, which is not a flag (sweep, find); NULL: none */
	int world, local_world; /* as given to config_resolve */
	int cores;		/* config_cores at that time: a rank is bound to some of them later */
	uint8_t origin[FLAG_COUNT]; /* enum config_origin */
};

/* argv[0] is the program. *ret is allocated (config_free) and untouched on failure. */
int config_parse(struct run_config **ret, int argc, char *const argv[], struct err *err);
void config_free(struct run_config *cfg); /* NULL is fine */

struct config_world {
	int world;			 /* ranks of the whole run */
	int local_world;		 /* ranks on this machine; 0: world */
	int64_t batch_from_samples;	 /* images in the file of --batch-from; 0 when not used (or not opened) */
	const struct run_config *before; /* of the job before it lost machines: keep its global batch and micro-batch;
					  * NULL: a new job */
};

int config_resolve(struct run_config *cfg, const struct config_world *w, struct err *err);

/* Reads --link; without it 0 s and 0 bytes per second, which means no limit. ERR_USAGE. */
int config_link(const struct run_config *cfg, double *ret_latency_s, double *ret_bytes_per_s, struct err *err);

/* Returns true if the user set the value (on the command line, in the environment or in the file). */
bool config_given(const struct run_config *cfg, enum flag_id id);

/* Sets an open INT flag to the value of data or model, with origin "derived". ERR_USAGE if the user set another value;
 * source names the origin of the value in the message ("the images of DIR"). */
int config_settle(struct run_config *cfg, enum flag_id id, int64_t value, const char *source, struct err *err);

/* Lowers the global batch to a training set of fewer samples if fine-tuning chose it; ERR_USAGE if the user did. path:
 * of the set, for the message. */
int config_fit_batch(struct run_config *cfg, int64_t samples, const char *path, struct err *err);

/* Splits the batch of a rank into micro-batches of at most `micro` samples; false if it is not fine-tuning that chose
 * them, or a step has one pass. */
bool config_split_batch(struct run_config *cfg, int64_t micro);

/* Sets a flag from text as typed, with origin "derived"; label names its source in messages
 * ("model.safetensors: n_head"). */
int config_put(struct run_config *cfg, enum flag_id id, const char *label, const char *text, struct err *err);

/* Resets the flag to its default, as if it had not been given. Call it before config_resolve. */
int config_take_back(struct run_config *cfg, enum flag_id id, struct err *err);

/* Writes where the value was set, for messages: "--lr", "run.json: lr", "OMP_NUM_THREADS". n bytes at ret; returns
 * ret. */
const char *config_label(const struct run_config *cfg, enum flag_id id, char *ret, size_t n);

/* Parses a number of bytes for this flag: "256MiB", "1.5G", "3e9". ERR_USAGE. */
int config_bytes(const struct run_config *cfg, enum flag_id id, const char *text, uint64_t *ret, struct err *err);

/* Returns the number of ranks that work on the same samples: the stages of a pipeline, else 1. */
int64_t config_stages(const struct run_config *cfg);

/* Reads --nnodes: N or MIN:MAX machines (N is N:N). Returns false if the text is neither. */
bool config_nodes(const struct run_config *cfg, int *ret_min, int *ret_max);

/* Reads --trace-steps ("10:13", inclusive; "10": one step). Returns false if there are none; config_resolve reports bad
 * text. */
bool config_trace_steps(const struct run_config *cfg, int64_t *ret_first, int64_t *ret_last);

/* Returns true if the command is `dptrain find WHAT`. */
bool config_finds(const struct run_config *cfg, const char *what);

/* Returns the cores of this machine (or the CPU limit of its container) per local rank; at least 1. */
int config_cores(const struct run_config *cfg);

/* The traits of a flag, a column of flags.def. */
enum config_trait { CONFIG_SEGMENT = 1, CONFIG_CHANGES = 2, CONFIG_LOCAL = 4, CONFIG_PLANNED = 8 };

/* One resolved value as text, for params of the tracked run and for `dptrain config`. */
struct config_item {
	const char *name;  /* "batch_size" */
	const char *value; /* valid during the callback */
	enum config_origin origin;
	bool is_number;	 /* value reads as a number (INT, REAL) */
	unsigned traits; /* bits of enum config_trait */
	enum flag_id id;
};

/* Calls fn for each flag of the command in the order of flags.def. Values that were neither given nor derived are "";
 * addresses lack user and password. */
void config_each(const struct run_config *cfg, void (*fn)(void *user, const struct config_item *item), void *user);

/* Text for stdout. config_print writes a table (or, with json set, an object that --config reads back). */
struct config_print_opts {
	bool json;
	int64_t parameters; /* trained numbers of the model; 0: not known */
};

/* Text of --help for a terminal of `width` columns. word: NULL: what fits in one screen; "all": every flag; otherwise
 * the flags, series and commands that mention it (ERR_USAGE: nothing does). */
struct config_help_opts {
	enum config_command command;
	const char *word;
	int width;
};

/* Candidates for the last of the words that follow the program's name, one a line: the candidate, a tab, what it is.
 * A line ":files" or ":folders" asks the shell for names of files or folders. */
void config_complete(int argc, char *const argv[], struct buf *out);

int config_help(const struct config_help_opts *o, struct buf *out, struct err *err);
void config_print(const struct run_config *cfg, const struct config_print_opts *o, struct buf *out);

/* Returns the name in the list that is nearest to the typed one, or NULL if none is near. */
const char *config_nearest(const char *typed, const char *const *names, size_t n_names);

/* The series that dptrain writes, from series.def; nothing is recorded under another key. */
enum series_of { SERIES_OF_RUN, SERIES_OF_RANK, SERIES_OF_ROOT };
enum series_at { SERIES_AT_STEP, SERIES_AT_EPOCH };
enum series_best { SERIES_BEST_NONE, SERIES_BEST_LESS, SERIES_BEST_MORE };

enum series_id {
#define SERIES(group, name, ...) SERIES_##group##_##name,
#include "trainer/config/series.def"
#undef SERIES
	SERIES_COUNT
};

struct series {
	const char *key; /* "train/loss" */
	enum series_of of;
	enum series_at at;
	enum series_best best;
	const char *help;
};

const struct series *series_get(enum series_id id);

/* Returns the series with that key if --save-best can select by it; else NULL. */
const struct series *series_best(const char *key);

#endif
