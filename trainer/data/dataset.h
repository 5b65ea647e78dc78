/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.h: a set of samples addressed by index: labelled images, or windows of a text's tokens. The formats are in
 * formats/. Each reads its own files and knows nothing of batches, ranks, order or augmentation.
 *
 * A dataset is immutable once open: any thread may call dataset_read. A missing or damaged file is ERR_USAGE: one
 * line with the file, what is wrong, the expected and the found value. */
#ifndef DPT_DATA_DATASET_H
#define DPT_DATA_DATASET_H

#include "tracker/base/sha256.h"
#include "tracker/base/thread.h"
#include "trainer/data/data_account.h"
#include "trainer/graph/graph.h"
#include "trainer/graph/rng.h"

#define DATASET_CHANNELS_MAX 4
#define DATASET_SAMPLES_MAX INT64_C(4294967295) /* per split: an order is a table of 32-bit indices */

enum split { SPLIT_TRAIN, SPLIT_VAL, SPLIT_COUNT };

const char *split_name(enum split s); /* "train", "val" */

struct dataset_ops;

enum sample_kind {
	SAMPLE_IMAGE,  /* pixels and one label */
	SAMPLE_TOKENS, /* seq_len tokens and the target of each (the next token; -1: unknown, ignored by the loss) */
};

const char *sample_kind_name(enum sample_kind k); /* "images", "tokens" */

/* A u8 pixel v of channel c becomes (v/255 - mean[c]) / std[c]. */
struct dataset_norm {
	double mean[DATASET_CHANNELS_MAX], std[DATASET_CHANNELS_MAX];
};

/* One set of a mix: training samples [first, first + n). weight: relative share of the draws. Within a set each
 * sample is drawn equally often. */
struct dataset_part {
	int64_t first, n;
	uint32_t weight;
};

#define WINDOW_LANES 64 /* places of a set that a window is read from (loader/sampler.h) */

/* Sets of compressed pages: lanes, at most WINDOW_LANES, and samples of the largest window whose pages their memory
 * holds. 0: no limit. */
struct dataset_page_window {
	int lanes;
	int64_t samples;
};

struct dataset { /* must be the first member of each format's struct */
	const struct dataset_ops *ops;
	enum sample_kind kind;
	char *path;			/* as opened, for messages */
	int64_t n_samples[SPLIT_COUNT]; /* 0: the set has no such split */
	int height, width, channels;
	int train_side; /* sets that decode pictures: height and width of the training images; 0: as above */
	int classes;	/* labels are in [0, classes) */
	const char *const *class_names; /* n_class_names of them, by label; NULL: classes have numbers only */
	int n_class_names;
	const char *columns; /* of its files that are read: "image.bytes and label"; NULL or "": they have none */
	bool classes_stated; /* their number is not that of the labels found: by the user or an index */
	int32_t *relabel; /* by the set's own labels: those to deliver (class_names.h); owned; NULL: the same */
	int n_relabel;
	int64_t seq_len, vocab; /* token sets: tokens per sample; tokens are in [0, vocab) */
	bool documents;		/* token sets: a sample holds several that are to be read apart */
	/* Index of the first sample of each piece (shard) of a split, ascending from 0; the entry after the last of
	 * the n_pieces is n_samples. NULL: the set has no pieces. */
	const int64_t *piece[SPLIT_COUNT];
	int64_t n_pieces[SPLIT_COUNT];
	uint64_t drawn_bytes; /* part of buffer_bytes that opening allocated */
	/* upper bound of the memory for reading, without the threads' scratch; memory plans include it */
	uint64_t buffer_bytes;
	struct dataset_page_window page_window;
	bool far;    /* on a network disk or a server: read it in storage order when possible */
	bool remote; /* on servers: our own threads fetch announced samples */
	/* Mixed sets: n_parts parts, and the number of training samples that make an epoch. NULL: not a mix. */
	const struct dataset_part *part;
	int n_parts;
	int64_t epoch_samples;
	bool endless; /* training has no epochs: position p is sample p modulo n_samples */
	/* dtype of the pixels that read returns: DTYPE_U8 is normalised later, DTYPE_F32 and DTYPE_F64 are used
	 * unchanged. */
	enum dtype dtype;
	/* Exact statistics of the training images, from integer sums. A constant channel has std 1. */
	double mean[DATASET_CHANNELS_MAX], std[DATASET_CHANNELS_MAX];
	/* Token sets: "bytes", or the SHA-256 of the BPE's files; "" if unknown. */
	char tokenizer[72];
	char *chat_template; /* conversations: the text of --chat-template, freed by the set; NULL: the tokenizer's */
	int32_t separator; /* token sets: the token between texts; -1: none, or unknown */
	char hash[64];		     /* of all pixels and labels: sets with equal content have equal hashes */
	struct data_account account; /* of the files at path, and of samples that cannot be used */
};

/* Crop spec of one sample, for sets that decode pictures: a random box or the centre, mirrored or not. */
struct dataset_sight {
	bool random, flip;
	struct rng_key key; /* of the sample (augment_key), for augment_draw_part */
};

/* How training images are augmented, as bits. Crop: pad by 4 black pixels on each side, then cut at a random
 * position. Flip: mirror left to right with probability 1/2. Random box (sets that decode pictures): resize a random
 * part of the picture to the set's size; without it the centre is used. Draws are keyed by (seed, epoch, sample). */
enum dataset_augment { DATASET_CROP = 1, DATASET_FLIP = 2, DATASET_RANDOM_BOX = 4 };

/* One sample to read, and where to store it. */
struct dataset_read {
	enum split split;
	int64_t index; /* in [0, n_samples[split]) */
	void *pixels;  /* height * width * channels elements of dataset->dtype, HWC; 64-byte alignment not needed */
	int32_t *label;
	int32_t *tokens, *targets;	   /* token sets: seq_len each */
	/* token sets: the place of each token in its document or conversation, seq_len; padding: 0. NULL: not wanted */
	int32_t *positions;
	bool alone;			   /* the caller will not read its neighbours soon */
	int64_t epoch;			   /* for announcements only: a sample is announced once per epoch */
	const struct stop *stop;	   /* once it is set, a wait for bytes ends with ERR_CANCELED; NULL: never */
	const struct dataset_sight *sight; /* sets with worker scratch (hand_new); NULL: the centre */
	void *hand;			   /* this thread's worker scratch; sets with hand_new */
};

/* The encoded file of a sample. */
struct dataset_file {
	struct buf bytes;   /* initialised by the caller; the content is replaced */
	const char *ending; /* "jpg", "png" */
	int32_t label;
};

/* Bytes read from a set's stores since it was opened. */
struct dataset_traffic {
	uint64_t remote_bytes, cache_bytes, local_bytes;
	uint64_t requests, retries; /* to remote stores */
	uint64_t refetched_bytes;   /* the part of remote_bytes that the cache had before */
	uint64_t peer_bytes;	    /* received from the caches of other nodes */
	uint64_t peer_failures;	    /* blocks that the store sent because their node did not */
};

/* Facts about the files of a split. */
struct dataset_facts {
	const char *format;    /* "tar", "tfrecord", …; static */
	int64_t shards;	       /* files that hold many samples each; 0: one file per sample */
	uint64_t bytes;	       /* of the samples as stored; 0: unknown */
	uint64_t cached_bytes; /* of both splits' files that were in the cache when the set was opened */
};

/* Training reads windows of `samples` samples one after the other, each window in any order. This is one process's
 * share. */
struct dataset_windows {
	int64_t window;	       /* of the flag: samples of all processes */
	int64_t samples;
	int places;	       /* separate positions of the set that a window is read from */
	uint64_t memory_bytes; /* allowed for holding them; 0: no limit */
};

/* An object of a store whose versions have numbers. */
struct dataset_object {
	const char *address;	/* gs://… */
	const char *generation; /* number of the version */
	uint64_t bytes;
};

/* Samples that are longer than seq_len. */
enum dataset_long { DATASET_LONG_REFUSE, DATASET_LONG_DROP, DATASET_LONG_SPLIT };

struct dataset_opts {
	const char *path;      /* folder; for shards see shard_list.h */
	int classes;	       /* 0: largest label + 1; otherwise larger labels are refused */
	int64_t seq_len;       /* token sets; 0: sets of images are preferred */
	bool any_kind;	       /* … or of any kind, in the order of the formats, to inspect it */
	const char *tokenizer; /* texts: "bytes" (NULL), or a folder (tokenizer.h) */
	const char *text_field; /* texts: member or column with the text; NULL: the usual one */
	const uint32_t *mix;   /* weights of the n_mix token sets that path joins by "::"; NULL: one set */
	int n_mix;
	int64_t epoch_samples; /* mixed set; 0: the sum over its sets */
	/* token sets: samples are whole documents (formats/pack.h) instead of the next seq_len tokens */
	bool pack_documents;
	bool pack_conversations;
	/* Conversations: */
	const char *chat_template; /* "chatml" or a file; NULL: the tokenizer's */
	int train_on;		   /* enum chat_train */
	int long_samples;	   /* enum dataset_long */
	bool allow_special;	   /* content may spell special tokens */
	const char *template_date; /* YYYY-MM-DD; NULL: the day when the data was last changed */
	bool fit_seq_len;	   /* samples are as long as the longest one, at most seq_len */
	uint64_t seed;		   /* draws val_share */
	/* Folders of images: */
	int image_size;	  /* height and width to resize to; 0: 224 */
	int train_side;	  /* the same for training images; 0: image_size */
	bool squeeze;	  /* evaluation resizes the whole picture to image_size instead of cropping the centre */
	int eval_resize;  /* evaluation: shorter side before the centre crop; 0: 256/224 of image_size */
	double val_share; /* share of the files (or of each text) for validation, if the set has no validation files */
	bool inspected;	  /* a set that max_unreadable would refuse is opened, with a notice */
	bool strict;	  /* a file or sample that is left out or unreadable is fatal (ERR_USAGE) */
	double data_timeout_s; /* remote stores: longest time without progress; 0: 300 */
	int read_ahead;	       /* requests in flight; 0: automatic */
	int parts;	       /* the set is read by this many processes, one part each; 0: one */
	const char *cache;     /* cache folder for remote data, or "ram"; NULL: no cache */
	uint64_t cache_bytes;  /* upper bound; 0: limited by the free space only */
	uint64_t memory_bytes; /* free for a cache in memory; 0: unknown */
	struct peers *peers;   /* nodes that share their caches (store/peers.h); borrowed; NULL: none */
	/* only sizes and classes are needed, as for a plan: no sample is read, and samples need not be checked */
	bool planned;
	double max_unreadable; /* largest share of unreadable samples; 10 samples are always tolerated. 0: no limit */
	/* Shards: */
	const char *val_path; /* validation shards; NULL: chosen by the shards' names, or val_share of the keys */
	const char *image_field, *label_field; /* field lists (webdataset.h); NULL: the usual names */
};

struct dataset_ops {
	const char *name;
	enum sample_kind kind; /* of the sets that probe detects */
	/* the files that identify this format, for messages; NULL: the format is never detected by path */
	const char *expects;
	/* Returns true if the folder's file names look like this format. open checks what the files contain. NULL
	 * like expects. */
	bool (*probe)(const char *path);
	int (*open)(struct dataset **ret, const struct dataset_opts *o, struct err *err); /* NULL like expects */
	int (*read)(const struct dataset *d, const struct dataset_read *r, struct err *err);
	void (*close)(struct dataset *d);
	/* Optional: returns the pixels of a sample in place (dtype, HWC), which saves a copy. */
	const void *(*peek)(const struct dataset *d, enum split split, int64_t index);
	/* Optional, together, for sets that decode pictures. Each reading thread has its own worker scratch. read
	 * returns ERR_CORRUPT for an unreadable file. broken counts such files, each once. notice takes the next
	 * line to show to the user (false: none). Thread-safe. */
	void *(*hand_new)(void);
	void (*hand_free)(void *hand);
	int64_t (*broken)(const struct dataset *d);
	bool (*notice)(struct dataset *d, char *ret, size_t bytes);
	/* Optional: announces that this sample will be read soon; calls come in reading order. Remote sets: returns
	 * false when enough is in flight, and the caller tries again later; thread-safe. Other sets: may wait for
	 * the disk. */
	bool (*ahead)(const struct dataset *d, const struct dataset_read *r);
	/* Optional: returns the encoded file of a sample. */
	int (*file)(const struct dataset *d, const struct dataset_read *r, struct dataset_file *ret, struct err *err);
	/* Optional, for sets that read samples on demand. Thread-safe. */
	void (*traffic)(const struct dataset *d, struct dataset_traffic *ret);
	/* Optional. NULL: only the format's name is known. */
	void (*facts)(const struct dataset *d, enum split split, struct dataset_facts *ret);
	/* Optional: hashes what identifies the content of a split without reading it. NULL: the set's hash is used. */
	void (*sum)(const struct dataset *d, enum split split, struct sha256 *to);
	/* Optional: returns object number `number` of those that hold samples of a split, from 0, in the order of
	 * their addresses. False: there are no more. NULL: the versions of the set's objects have no numbers. */
	bool (*object)(const struct dataset *d, enum split split, int64_t number, struct dataset_object *ret);
	/* Optional: describes where a sample is stored, for people: its file, or its archive and the name in it. */
	void (*where)(const struct dataset *d, enum split split, int64_t index, char *ret, size_t bytes);
	/* Optional, called once, before the first read: enlarges the buffers so that windows fit. */
	void (*hold)(struct dataset *d, const struct dataset_windows *w);
	/* Optional: a sample's label, without reading it. */
	int32_t (*label)(const struct dataset *d, enum split split, int64_t index);
	/* Optional: a sample's weight in a mean: its number of targets. NULL: 1 for images, seq_len for tokens. */
	int64_t (*weight)(const struct dataset *d, enum split split, int64_t index);
	/* Optional: appends what the samples were made of, as a sentence without a full stop. */
	void (*say)(const struct dataset *d, struct buf *out);
};

void dataset_close(struct dataset *d); /* NULL is fine */
int dataset_read(const struct dataset *d, const struct dataset_read *r, struct err *err);
int64_t dataset_broken(const struct dataset *d); /* unreadable files so far */
bool dataset_notice(struct dataset *d, char *ret, size_t bytes);
struct dataset_traffic dataset_traffic(const struct dataset *d); /* zeros if the set does not count */
struct dataset_facts dataset_facts(const struct dataset *d, enum split split);

/* Names the content of a split: a SHA-256 over keys, sizes, labels and known checksums. whole: reads every sample
 * and hashes its stored bytes and its label instead. ret: 64 hex digits and a NUL. */
int dataset_digest(const struct dataset *d, enum split split, bool whole, char ret[65], struct err *err);
/* Height and width of a split's images. */
static inline int dataset_height(const struct dataset *d, enum split split)
{
	return split == SPLIT_TRAIN && d->train_side ? d->train_side : d->height;
}

static inline int dataset_width(const struct dataset *d, enum split split)
{
	return split == SPLIT_TRAIN && d->train_side ? d->train_side : d->width;
}

struct dataset_norm dataset_norm(const struct dataset *d); /* from the set's own mean and std */
/* Writes "" if only the index is known. Text that does not fit is cut. */
void dataset_where(const struct dataset *d, enum split split, int64_t index, char *ret, size_t bytes);

/* Returns what the sample counts for in a mean: dataset_ops.weight or its default. */
int64_t dataset_weight(const struct dataset *d, enum split split, int64_t index);

/* ---- the account (data_account.h) ---- */

/* Gives the account to `line`, each part as a line without a newline: what is used, then as warnings what is left out
 * for at most `most` reasons, doubts, and the notices so far, which are then said. All commands that open a set print
 * it. */
void dataset_tell(struct dataset *d, int most, void (*line)(void *user, bool warns, const char *text), void *user);

/* Appends one line without a newline: "60 files (50 .jpg, 10 .png), 3 classes: ant, bee, cat". */
void dataset_say_used(const struct dataset *d, struct buf *out);

/* Appends a warning about the set as a whole, without a newline: a set of one class, labels that begin at 1, gaps among
 * them, a label far above the others. */
void dataset_say_doubts(const struct dataset *d, struct buf *out);

/* Ends the line that begins at `from`, unless it is empty. Control characters of quoted names become question marks. */
void dataset_end_line(struct buf *out, size_t from);

/* Appends the account as one JSON object, with at most `names` names of classes. ERR_NOMEM: Jansson's memory. */
int dataset_account_json(const struct dataset *d, int names, struct buf *out, struct err *err);

#endif
