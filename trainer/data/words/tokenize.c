/* tokenize.c: a list of texts, read through mappings, into train.tokens and val.tokens. */
#include "trainer/data/words/tokenize.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracker/base/file_map.h"
#include "trainer/data/words/token_file.h"

#define PATH_BYTES 4200

static bool is_text(const char *name)
{
	size_t n = strlen(name), k = strlen(TOKENIZE_SUFFIX);

	return name[0] != '.' && n > k && !strcmp(name + n - k, TOKENIZE_SUFFIX);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct texts *t, const char *dir, const char *name)
{
	char **bigger = realloc(t->name, (size_t)(t->n + 1) * sizeof(*bigger)), path[PATH_BYTES];

	if (!bigger)
		return ERR_NOMEM;
	t->name = bigger;
	snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", name);
	t->name[t->n] = strdup(path);
	return t->name[t->n++] ? 0 : ERR_NOMEM;
}

bool texts_in_val(const struct texts *t, int i)
{
	const char *slash = strrchr(t->name[i], '/'), *name = slash ? slash + 1 : t->name[i];

	return t->n > 1 && (!strncmp(name, "val", 3) || !strncmp(name, "test", 4));
}

static int list_folder(struct texts *t, const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int rc = 0;

	while (d && !rc && (e = readdir(d)))
		if (is_text(e->d_name))
			rc = add_name(t, path, e->d_name);
	if (d)
		closedir(d);
	return rc;
}

int texts_find(struct texts *ret, const char *path, struct err *err)
{
	struct texts t = { .n = 0 };
	int n_val = 0, rc;
	struct stat st;

	if (stat(path, &st))
		return err_set(err, ERR_USAGE, "%.300s: %s", path, strerror(errno));
	rc = S_ISDIR(st.st_mode) ? list_folder(&t, path) : add_name(&t, "", path);
	if (rc) {
		texts_done(&t);
		return err_set(err, ERR_NOMEM, "out of memory: the texts of %.300s", path);
	}
	if (!t.n)
		return err_set(err, ERR_USAGE, "%.300s: holds no text (*%s)", path, TOKENIZE_SUFFIX);
	qsort(t.name, (size_t)t.n, sizeof(*t.name), by_name);
	for (int i = 0; i < t.n; i++)
		n_val += texts_in_val(&t, i);
	t.has_val = n_val > 0 && n_val < t.n;
	*ret = t;
	return 0;
}

void texts_done(struct texts *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->name[i]);
	free(t->name);
	*t = (struct texts){ .n = 0 };
}

struct job {
	const struct tokenize_opts *o;
	struct token_writer *to[SPLIT_COUNT];
	char path[SPLIT_COUNT][PATH_BYTES];
};

static int emit(void *user, const int32_t *tokens, size_t n, struct err *err)
{
	return token_writer_add(user, tokens, n, err);
}

static int add_part(struct job *j, enum split s, const char *text, size_t n, struct err *err)
{
	const struct tokenize_opts *o = j->o;
	int32_t separator = tokenizer_separator(o->tokenizer);
	const struct tokenizer_sink sink = { emit, j->to[s] };
	int rc = 0;

	if (n && separator >= 0) /* in front of each text, as GPT-2 was trained */
		rc = token_writer_add(j->to[s], &separator, 1, err);
	return rc ? rc : tokenizer_encode(o->tokenizer, text, n, &sink, err);
}

/* Where the part for evaluation begins: at the first line behind its share. */
static size_t cut_at(const struct job *j, const char *text, size_t n)
{
	size_t at = n - (size_t)((double)n * j->o->val_share);
	const char *line;

	if (j->o->texts->has_val || at >= n)
		return n;
	line = memchr(text + at, '\n', n - at);
	return line && line + 1 < text + n ? (size_t)(line + 1 - text) : at;
}

static int add_text(struct job *j, int i, struct err *err)
{
	struct file_map text = { 0 };
	int rc = file_map_open(&text, j->o->texts->name[i], err);
	const char *bytes = (const char *)text.bytes;
	size_t cut;

	if (rc)
		return rc;
	cut = text.n ? cut_at(j, bytes, text.n) : 0;
	if (j->o->texts->has_val && texts_in_val(j->o->texts, i))
		cut = 0;
	rc = add_part(j, SPLIT_TRAIN, bytes, cut, err);
	if (!rc && text.n)
		rc = add_part(j, SPLIT_VAL, bytes + cut, text.n - cut, err);
	file_map_close(&text);
	return rc;
}

static int open_writers(struct job *j, struct err *err)
{
	const struct tokenize_opts *o = j->o;
	int rc = 0;

	if (mkdir(o->out, 0777) && errno != EEXIST)
		return err_set_errno(err, errno, "make the folder %.300s", o->out);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++) {
		snprintf(j->path[s], sizeof(j->path[s]), "%s/%s" TOKEN_FILE_SUFFIX, o->out, split_name((enum split)s));
		rc = token_writer_open(&j->to[s],
				       &(struct token_writer_opts){ .path = j->path[s],
								    .tokenizer = tokenizer_name(o->tokenizer),
								    .vocab = tokenizer_vocab(o->tokenizer) },
				       err);
	}
	return rc;
}

int tokenize(const struct tokenize_opts *o, int64_t ret_count[SPLIT_COUNT], struct err *err)
{
	struct job j = { .o = o };
	int rc = open_writers(&j, err);

	for (int i = 0; !rc && i < o->texts->n; i++)
		rc = add_text(&j, i, err);
	if (!rc && token_writer_count(j.to[SPLIT_TRAIN]) < 2)
		rc = err_set(err, ERR_USAGE, "%.300s%s: too short to learn from: %lld tokens", o->texts->name[0],
			     o->texts->n > 1 ? " and the texts beside it" : "",
			     (long long)token_writer_count(j.to[SPLIT_TRAIN]));
	for (int s = SPLIT_COUNT - 1; !rc && s >= 0; s--) { /* train.tokens last: it says that all is there */
		ret_count[s] = token_writer_count(j.to[s]);
		if (ret_count[s])
			rc = token_writer_commit(j.to[s], err);
		else
			unlink(j.path[s]); /* of an earlier time */
	}
	for (int s = 0; s < SPLIT_COUNT; s++)
		token_writer_close(j.to[s]);
	return rc;
}
