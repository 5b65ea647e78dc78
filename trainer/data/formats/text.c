/* text.c: a folder of texts (texts.h). It is tokenized once, into a cache folder named after the tokenizer and the
 * texts (names, sizes and times), in the set's .dptrain or in the user's cache; then the set is opened as a folder
 * of tokens. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/buf.h"
#include "tracker/base/sha256.h"
#include "trainer/data/corpus/tokenize.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/cache_dir.h"
#include "trainer/data/formats/token_folder.h"

#define PATH_BYTES CACHE_DIR_PATH_BYTES

static bool text_probe(const char *path)
{
	struct texts t;

	if (texts_find(&t, path, false, NULL))
		return false;
	texts_done(&t);
	return true;
}

/* Hashes everything that the cached tokens depend on to 16 hex digits. */
static int make_token_cache_key(const struct texts *t, const struct tokenizer *tokenizer, const struct dataset_opts *o,
				char ret[17], struct err *err)
{
	char hex[65];
	struct buf b;
	int rc = 0;

	buf_init(&b, (size_t)1 << 26);
	/* Key version 1 is for token files that may lack document ends; only --pack documents needs version 2. */
	buf_addf(&b, "%d %s %g", o->pack_documents ? 2 : 1, tokenizer_name(tokenizer), t->has_val ? 0 : o->val_share);
	for (int i = 0; !rc && i < t->n; i++) {
		struct stat st;

		if (stat(t->name[i], &st))
			rc = err_set(err, ERR_USAGE, "%.300s: %s", t->name[i], strerror(errno));
		else
			buf_addf(&b, "\n%s %lld %lld.%09ld", strrchr(t->name[i], '/'), (long long)st.st_size,
				 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
	if (!rc && buf_failed(&b))
		rc = err_set(err, ERR_NOMEM, "out of memory: the texts' names");
	if (!rc) {
		sha256_hex(b.data, b.len, hex);
		snprintf(ret, 17, "%.16s", hex);
	}
	buf_done(&b);
	return rc;
}

/* Tokenizes unless another rank or an earlier run has done so. Only one process at a time. */
static int fill_token_cache(const struct tokenize_opts *o, const char *parent, struct err *err)
{
	char train[PATH_BYTES];
	struct tokenize_made made;
	int fd, rc = 0;

	if (!cache_dir_join(train, o->out, TOKENS_TRAIN))
		return err_set(err, ERR_USAGE, "%.300s…: the path is too long", parent);
	if (access(train, F_OK) == 0)
		return 0;
	fd = cache_dir_lock(parent);
	if (fd < 0)
		rc = err_set_errno(err, errno, "lock %.300s/lock", parent);
	if (!rc && access(train, F_OK))
		rc = tokenize(o, &made, err);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Returns the folder of the tokens, after tokenizing if needed. */
static int prepare_text_tokens(const struct dataset_opts *o, const struct texts *t, char ret[PATH_BYTES],
			       struct err *err)
{
	struct tokenizer *tokenizer;
	char parent[PATH_BYTES] = "", key[17], train[PATH_BYTES];
	bool writable;
	int rc = tokenizer_open(&tokenizer, o->tokenizer ? o->tokenizer : "bytes", err);

	if (rc)
		return rc;
	rc = make_token_cache_key(t, tokenizer, o, key, err);
	if (rc)
		goto out;
	writable = cache_dir_beside(o->path, parent);
	if (!cache_dir_join(ret, parent, key) || !cache_dir_join(train, ret, TOKENS_TRAIN)) {
		rc = err_set(err, ERR_USAGE, "%.300s…: the path is too long", o->path);
		goto out;
	}
	if (!writable && access(train, F_OK) &&
	    !(cache_dir_in_cache(o->path, parent) && cache_dir_join(ret, parent, key))) {
		rc = err_set(err, ERR_USAGE,
			     "%.200s: neither this folder nor the user's cache is writable for its tokens: make one "
			     "writable, or run dptrain tokenize",
			     o->path);
		goto out;
	}
	rc = fill_token_cache(
		&(struct tokenize_opts){ .texts = t, .tokenizer = tokenizer, .out = ret, .val_share = o->val_share },
		parent, err);
out:
	tokenizer_close(tokenizer);
	return rc;
}

static int text_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	char folder[PATH_BYTES];
	struct texts t;
	int rc = texts_find(&t, o->path, false, err);

	if (rc)
		return rc;
	rc = prepare_text_tokens(o, &t, folder, err);
	texts_done(&t);
	return rc ? rc : tokens_open(ret, folder, o, err);
}

const struct dataset_ops dataset_text = {
	.name = "text",
	.expects = "texts (*.txt, *.jsonl, as they are or .gz, .zst)",
	.probe = text_probe,
	.open = text_open,
};
