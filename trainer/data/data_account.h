/* SPDX-License-Identifier: Apache-2.0 */
/* data_account.h: the account of a data set: what it uses and what it leaves out, and why. Formats fill it while they
 * open. Whatever is in a place that the user named is counted once: as used, as left out, or as hidden. Plain memory of
 * a fixed size; one thread. Knows no format. */
#ifndef DPT_DATA_DATA_ACCOUNT_H
#define DPT_DATA_DATA_ACCOUNT_H

#include <sys/stat.h>

#include "tracker/base/buf.h"

#define DATA_ACCOUNT_CACHE ".dptrain" /* the folder of what we derive from a set, next to its files */
#define DATA_ACCOUNT_KINDS 24
#define DATA_ACCOUNT_REASONS 24
#define DATA_ACCOUNT_KIND_BYTES 24
#define DATA_ACCOUNT_TEXT_BYTES 240

enum data_account_unit { DATA_ACCOUNT_FILES, DATA_ACCOUNT_SAMPLES, DATA_ACCOUNT_UNITS };

struct data_account_kind {
	char name[DATA_ACCOUNT_KIND_BYTES]; /* "jpg"; "other": kinds that have no place of their own */
	int64_t n;
};

struct data_account_reason {
	enum data_account_unit unit;
	int64_t n;
	char why[DATA_ACCOUNT_TEXT_BYTES];     /* ".webp needs libwebp (package libwebp-dev)" */
	char example[DATA_ACCOUNT_TEXT_BYTES]; /* the first one's name in byte order, relative to the data path */
};

struct data_account { /* zeroed: empty */
	struct data_account_kind used[DATA_ACCOUNT_KINDS];
	struct data_account_reason left[DATA_ACCOUNT_REASONS];
	int n_used, n_left;
	/* Names that data_account_hides, except our cache folder. A folder counts once. */
	int64_t hidden;
};

/* Counts a used file; its kind is the extension of its name, in lower case. A NULL account is fine here and below. */
void data_account_use(struct data_account *a, const char *name);

/* Counts n used files of a kind. */
void data_account_use_kind(struct data_account *a, const char *kind, int64_t n);

/* Counts a file that is left out. Equal reasons are one entry. why: what the user reads after the number: "images
 * outside of the class folders". */
void data_account_leave_file(struct data_account *a, const char *name, const char *why, ...)
	__attribute__((format(printf, 3, 4)));

/* Counts n samples that are left out. example: where the first one is; NULL: unknown. */
void data_account_leave_samples(struct data_account *a, int64_t n, const char *example, const char *why, ...)
	__attribute__((format(printf, 4, 5)));

/* Counts a file that is not part of the set, by its extension. */
void data_account_leave_unknown(struct data_account *a, const char *name);

/* Returns true for names that are neither used nor left out: those with a part that begins with a dot, and what
 * Windows and macOS add to folders. */
bool data_account_hides(const char *name);

/* Counts such a name. */
void data_account_hide(struct data_account *a, const char *name);

/* Adds the counts of another account, whose examples are below `folder` ("": the same folder). */
void data_account_add(struct data_account *to, const struct data_account *from, const char *folder);

int64_t data_account_used(const struct data_account *a);			      /* files */
int64_t data_account_left(const struct data_account *a, enum data_account_unit unit); /* hidden files are not counted */

/* Appends "left out 20 files: 18 .webp needs … (train/a/1.webp); 2 …", without a newline; nothing if nothing is. The
 * line names at most `most` reasons. */
void data_account_say_left(const struct data_account *a, int most, struct buf *out);

/* Appends "40 .jpg, 10 .png", the most frequent first. */
void data_account_say_used(const struct data_account *a, struct buf *out);

#define DATA_ACCOUNT_DEPTH 64

/* The folders from the root of a walk to the current one, by which a walk notices links that lead back. */
struct data_account_path {
	dev_t device[DATA_ACCOUNT_DEPTH];
	ino_t inode[DATA_ACCOUNT_DEPTH];
};

/* Adds a folder at a depth (0: the root). False: it is one of the folders above it, or too deep. */
bool data_account_enter(struct data_account_path *p, const struct stat *st, int depth);

/* What becomes of a file, or of a folder, whose name ends in a slash. */
enum data_account_fate {
	DATA_ACCOUNT_USED,
	DATA_ACCOUNT_LEFT,    /* files: left out; folders: their files are asked about */
	DATA_ACCOUNT_COUNTED, /* counted elsewhere; the content of such a folder, too */
};

/* Decides about one name, relative to the data path. A file that is left out: may write why, an empty text before. */
struct data_account_rule {
	enum data_account_fate (*fate)(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES]);
	void *user;
};

/* Counts every file below a local folder by the rule. Links to folders are followed, loops and unreadable folders are
 * left out. */
void data_account_walk(struct data_account *a, const char *folder, const struct data_account_rule *rule);

#endif
