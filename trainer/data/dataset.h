/* dataset.h: a set of samples behind one index: labelled images, or windows of a text's tokens. Formats lie in
 * formats/; each reads its own files and knows nothing of batches, ranks, order or augmentation.
 *
 * A dataset is immutable once open: dataset_read may be called from any thread. Failures of files are ERR_USAGE (the
 * user named something missing or damaged): one line with file, what, expected and found. */
#ifndef DPT_DATA_DATASET_H
#define DPT_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "tracker/base/buf.h"
#include "tracker/base/err.h"
#include "tracker/base/sha256.h"
#include "tracker/base/stop.h"
#include "trainer/graph/graph.h"
#include "trainer/graph/rng.h"

#define DATASET_CHANNELS_MAX 4
#define DATASET_SAMPLES_MAX INT64_C(4294967295) /* of one split: an order is a table of 32-bit indices */

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_COUNT };

const char *split_name(enum split s); /* "train", "val" */

struct dataset_ops;

enum sample_kind {
	SAMPLE_IMAGE,  /* pixels and one label */
	SAMPLE_TOKENS, /* seq_len tokens and the token that follows each (-1: none is known, nothing is learnt there) */
};

const char *sample_kind_name(enum sample_kind k); /* "images", "tokens" */

/* A u8 pixel v of channel c becomes (v/255 - mean[c]) / std[c]. */
struct dataset_norm {
	double mean[DATASET_CHANNELS_MAX], std[DATASET_CHANNELS_MAX];
};

/* A set within a mixed one: training samples [first, first + n), drawn by weight, each as often as any other of it. */
struct dataset_part {
	int64_t first, n;
	uint32_t weight;
};

struct dataset { /* first member of each format's own struct */
	const struct dataset_ops *ops;
	enum sample_kind kind;
	char *path;                   /* what was opened, for messages */
	int64_t n_samples[SPLIT_COUNT]; /* 0: the set has no such split */
	int height, width, channels;
	int classes;                  /* labels are in [0, classes) */
	const char *const *class_names; /* n_class_names of them, by label; NULL: only numbers are known */
	int n_class_names;
	int64_t seq_len, vocab;       /* token sets: length of a sample; tokens are in [0, vocab) */
	/* Where the pieces (shards) of a split begin among its samples, ascending from 0, with n_samples behind the
	 * last of n_pieces; NULL: it has none. */
	const int64_t *piece[SPLIT_COUNT];
	int64_t n_pieces[SPLIT_COUNT];
	uint64_t drawn_bytes;	      /* of buffer_bytes: there since it was opened */
	uint64_t buffer_bytes;	      /* that reading holds at most, beside what each thread has: plans count them */
	bool far;                     /* is best read in the order it lies in: on a network disk, or farther */
	bool remote;                  /* comes from servers: what is announced is fetched by our own threads */
	/* Mixed sets: their n_parts parts, and how many training samples are called an epoch. NULL: others. */
	const struct dataset_part *part;
	int n_parts;
	int64_t epoch_samples;
	bool endless;                 /* training has no epochs: position p stands for sample p modulo n_samples */
	/* Type of the pixels that read gives: DTYPE_U8, to be normalised, or DTYPE_F32 or
	 * DTYPE_F64, used as they are. */
	enum dtype dtype;
	/* Of the training images, exact: sums in integers; a channel that is constant has std 1. */
	double mean[DATASET_CHANNELS_MAX], std[DATASET_CHANNELS_MAX];
	/* token sets: "bytes", or the SHA-256 of the BPE's files; "" when it is not known */
	char tokenizer[72];
	char hash[64];                /* of all pixels and labels: two sets with the same content have the same text */
};

/* How a set that decodes pictures looks at one of them: a random box of it, or its middle; mirrored or not. The draws
 * depend on key and sample alone. */
struct dataset_sight {
	bool random, flip;
	struct rng_key key;
};

/* How training images are varied, as bits. Crop: the image padded by 4 black pixels on each side, cut at a random
 * place. Flip: left and right change with probability 1/2. Random box (sets that decode pictures): a part of the
 * picture, brought to the set's size; without it the middle. Draws are keyed by (seed, epoch, sample). */
enum dataset_augment { DATASET_CROP = 1, DATASET_FLIP = 2, DATASET_RANDOM_BOX = 4 };

/* Where one sample goes. */
struct dataset_read {
	enum split split;
	int64_t index;   /* in [0, n_samples[split]) */
	void *pixels;    /* height * width * channels elements of dataset->dtype, HWC; 64-byte alignment not needed */
	int32_t *label;
	int32_t *tokens, *targets; /* token sets: seq_len each */
	bool alone;	 /* its neighbours will not be read soon */
	int64_t epoch;	 /* of announcements alone: a sample is announced once in each */
	const struct stop *stop; /* a wait for bytes ends with ERR_CANCELED once it is asked for; NULL: never */
	const struct dataset_sight *sight; /* sets with hands; NULL: the middle */
	void *hand;                        /* of this thread; sets with hands */
};

/* The file that a sample's pixels come from. */
struct dataset_file {
	struct buf bytes;  /* initialised by the caller; what it held is replaced */
	const char *ending; /* "jpg", "png" */
	int32_t label;
};

/* What was read of a set's stores since it was opened. */
struct dataset_traffic {
	uint64_t remote_bytes, cache_bytes, local_bytes;
	uint64_t requests, retries; /* of remote stores */
};

/* What the files of a split are. */
struct dataset_facts {
	const char *format;    /* "tar", "tfrecord", …; static */
	int64_t shards;	       /* files that hold many samples each; 0: others */
	uint64_t bytes;	       /* of its samples, as they are stored; 0: not known */
	uint64_t cached_bytes; /* of both splits' files that lay in the cache when the set was opened */
};

/* Training reads windows of so many samples, one behind the other, each in any order: what one process reads of them,
 * in so many places of the set. */
struct dataset_windows {
	int64_t samples;
	int places;
	uint64_t memory_bytes; /* that may be held of them; 0: as many as are wanted */
};

struct dataset_opts {
	const char *path; /* folder; shards: as shard_list.h says */
	int classes;      /* 0: as many as the labels say; else labels at or above it are refused */
	int64_t seq_len;  /* of token sets */
	const char *tokenizer; /* of texts: "bytes" (NULL), or a folder (tokenizer.h) */
	const uint32_t *mix; /* path names n_mix token sets, joined by "::", with these weights; NULL: one set */
	int n_mix;
	int64_t epoch_samples; /* of a mixed set; 0: as many as its sets have */
	bool pack_documents; /* token sets: samples of whole documents (formats/pack.h), not the next seq_len tokens */
	/* Folders of images. */
	int image_size;   /* height and width that pictures are brought to; 0: 224 */
	bool squeeze;     /* evaluation takes the whole picture, squeezed into image_size, instead of its middle */
	int eval_resize;  /* shorter side before the middle is cut out, for evaluation; 0: 256/224 of image_size */
	double val_share; /* of the files, where there is no folder of validation images; of each text */
	bool strict;      /* a file that cannot be read ends everything (ERR_USAGE) */
	double data_timeout_s; /* of remote stores: without progress; 0: 300 */
	int read_ahead;	       /* requests in flight; 0: as many as are useful */
	int parts; /* that the set is read in, each by a process; 0: one */
	const char *cache; /* folder that keeps what comes from remote stores, or "ram"; NULL: none */
	uint64_t cache_bytes; /* … at most; 0: as there is room */
	uint64_t memory_bytes; /* that are free for one in memory; 0: not known */
	bool cache_decoded; /* … keeps evaluation pictures too, as they are delivered: of sets that decode them */
	double max_broken; /* share of the set that may be broken; 10 samples always may. 0: any */
	/* Of shards. */
	const char *val_path; /* of validation; NULL: by the shards' names, or val_share of the keys */
	const char *image_field, *label_field; /* webdataset.h; NULL: as usual */
};

struct dataset_ops {
	const char *name;
	const char *expects; /* the files that make a folder this format, for messages; NULL: never found by a path */
	/* Whether the folder's file names look like this format; what the files hold is checked by open. NULL as
	 * expects. */
	bool (*probe)(const char *path);
	int (*open)(struct dataset **ret, const struct dataset_opts *o, struct err *err); /* NULL as expects */
	int (*read)(const struct dataset *d, const struct dataset_read *r, struct err *err);
	void (*close)(struct dataset *d);
	/* Optional: the pixels of a sample where they lie (dtype, HWC), so that they need not be copied. */
	const void *(*peek)(const struct dataset *d, enum split split, int64_t index);
	/* Optional, together: sets that decode pictures. Every thread that reads has a hand of its own. read returns
	 * ERR_CORRUPT for a file that cannot be read; broken counts such files, each once, and notice takes the next
	 * line that somebody should see (false: none). From any thread. */
	int (*hand_new)(void **ret, struct err *err);
	void (*hand_free)(void *hand);
	int64_t (*broken)(const struct dataset *d);
	bool (*notice)(struct dataset *d, char *ret, size_t bytes);
	/* Optional: somebody will read this sample, in the order of such calls. False: enough is on its way, again
	 * later; of remote sets alone. From any thread; of others it may wait for the disk. */
	bool (*ahead)(const struct dataset *d, const struct dataset_read *r);
	/* Optional: the file of a sample, undecoded. */
	int (*file)(const struct dataset *d, const struct dataset_read *r, struct dataset_file *ret, struct err *err);
	/* Optional, of sets that read samples when they are asked for. From any thread. */
	void (*traffic)(const struct dataset *d, struct dataset_traffic *ret);
	/* Optional: NULL where nothing but the format's name is known. */
	void (*facts)(const struct dataset *d, enum split split, struct dataset_facts *ret);
	/* Optional: adds what tells one content of a split from another without reading it; NULL: its hash does. */
	void (*sum)(const struct dataset *d, enum split split, struct sha256 *to);
	/* Optional: where a sample lies, for people to find it: its file, or its archive and its name there. */
	void (*where)(const struct dataset *d, enum split split, int64_t index, char *ret, size_t bytes);
	/* Optional, once, before anything is read: what reading holds is made as large as windows need it. */
	void (*hold)(struct dataset *d, const struct dataset_windows *w);
	/* Optional: what a sample counts for in a mean: its targets. NULL: 1 for images, seq_len for tokens. */
	int64_t (*weight)(const struct dataset *d, enum split split, int64_t index);
};

void dataset_close(struct dataset *d); /* NULL is fine */
int dataset_read(const struct dataset *d, const struct dataset_read *r, struct err *err);
int64_t dataset_broken(const struct dataset *d); /* files that could not be read so far */
bool dataset_notice(struct dataset *d, char *ret, size_t bytes);
struct dataset_traffic dataset_traffic(const struct dataset *d); /* zeros of sets that do not count */
struct dataset_facts dataset_facts(const struct dataset *d, enum split split);

/* Names the content of a split: a SHA-256 over keys, sizes, labels and what checksums there are; with `whole` over
 * every sample as it is stored, which is read for it, and the label. */
int dataset_digest(const struct dataset *d, enum split split, bool whole, char ret[65], struct err *err);
struct dataset_norm dataset_norm(const struct dataset *d); /* by what the set says of itself */
/* "" where nothing but its number is known; what is too long is cut. */
void dataset_where(const struct dataset *d, enum split split, int64_t index, char *ret, size_t bytes);
int64_t dataset_weight(const struct dataset *d, enum split split, int64_t index);

#endif
