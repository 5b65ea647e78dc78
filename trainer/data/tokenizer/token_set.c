/* token_set.c: finds the files of a split and where each begins. */
#include "trainer/data/tokenizer/token_set.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/crc32c.h"

#define PATH_BYTES 4200
#define FILES_MAX 100000

/* Matches "NAME.tokens" and "NAME-*.tokens". */
static bool is_split_file(const char *file, const char *name, bool *ret_alone)
{
	size_t n = strlen(name), all = strlen(file), suffix = strlen(TOKEN_FILE_SUFFIX);

	if (all < n + suffix || strncmp(file, name, n) || strcmp(file + all - suffix, TOKEN_FILE_SUFFIX))
		return false;
	*ret_alone = all == n + suffix;
	return *ret_alone || file[n] == '-';
}

bool token_set_probe(const char *folder, const char *name)
{
	DIR *d = opendir(folder);
	bool found = false, alone;
	struct dirent *e;

	while (d && !found && (e = readdir(d)))
		found = is_split_file(e->d_name, name, &alone);
	if (d)
		closedir(d);
	return found;
}

static int add_split_file_name(struct token_set *s, const char *file, struct err *err)
{
	char **more, *copy;

	if (s->n == FILES_MAX)
		return err_set(err, ERR_USAGE, "%.200s: more than %d token files", file, FILES_MAX);
	copy = strdup(file);
	more = copy ? realloc(s->name, ((size_t)s->n + 1) * sizeof(*more)) : NULL;
	if (!more) {
		free(copy);
		return err_set(err, ERR_NOMEM, "out of memory: the names of token files");
	}
	s->name = more;
	s->name[s->n++] = copy;
	return 0;
}

static int compare_split_file_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Collects the file names of a split, sorted. Refuses NAME.tokens next to NAME-*.tokens. */
static int find_split_files(struct token_set *s, const char *folder, const char *name, struct err *err)
{
	DIR *d = opendir(folder);
	bool any_alone = false, alone;
	struct dirent *e;
	int rc = 0;

	if (!d)
		return err_set(err, ERR_USAGE, "%.300s: %s", folder, strerror(errno));
	while (!rc && (e = readdir(d)))
		if (is_split_file(e->d_name, name, &alone)) {
			any_alone |= alone;
			rc = add_split_file_name(s, e->d_name, err);
		}
	closedir(d);
	if (!rc && any_alone && s->n > 1)
		rc = err_set(err, ERR_USAGE,
			     "%.300s: has both %s" TOKEN_FILE_SUFFIX " and %d files %s-*" TOKEN_FILE_SUFFIX
			     ": keep one of the two",
			     folder, name, s->n - 1, name);
	if (!rc && s->n)
		qsort(s->name, (size_t)s->n, sizeof(*s->name), compare_split_file_names);
	return rc;
}

/* Opens file i and appends its tokens to those of the files before it. */
static int open_split_file(struct token_set *s, int i, const char *path, struct err *err)
{
	const struct token_file *f = &s->file[i];
	int rc = token_file_open(&s->file[i], path, err);

	if (rc)
		return rc;
	if (i && (f->vocab != s->vocab || strcmp(f->tokenizer, s->tokenizer) ||
		  (f->documents && s->documents && f->separator != s->separator)))
		return err_set(err, ERR_USAGE, "%.300s: was made with another tokenizer than %s in the same folder",
			       path, s->name[0]);
	s->first[i + 1] = s->first[i] + f->count;
	s->document[i + 1] = s->document[i] + f->documents;
	s->count = s->first[i + 1];
	s->vocab = f->vocab;
	s->tokenizer = s->file[0].tokenizer;
	if (!f->count) /* an empty file need not have document ends */
		return 0;
	s->documents = (!s->first[i] || s->documents) && f->documents ? s->document[i + 1] : 0;
	s->separator = f->separator;
	return 0;
}

int token_set_open(struct token_set *ret, const char *folder, const char *name, struct err *err)
{
	struct token_set s = { .separator = -1 };
	char path[PATH_BYTES];
	int rc = find_split_files(&s, folder, name, err);

	s.file = calloc((size_t)s.n + 1, sizeof(*s.file));
	s.first = calloc((size_t)s.n + 1, sizeof(*s.first));
	s.document = calloc((size_t)s.n + 1, sizeof(*s.document));
	if (!rc && (!s.file || !s.first || !s.document))
		rc = err_set(err, ERR_NOMEM, "out of memory: %d token files", s.n);
	for (int i = 0; !rc && i < s.n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, s.name[i]);
		rc = open_split_file(&s, i, path, err);
	}
	if (rc) {
		token_set_close(&s);
		return rc;
	}
	*ret = s;
	return 0;
}

void token_set_close(struct token_set *s)
{
	for (int i = 0; i < s->n; i++) {
		if (s->file)
			token_file_close(&s->file[i]);
		free(s->name[i]);
	}
	free(s->file);
	free(s->name);
	free(s->first);
	free(s->document);
	*s = (struct token_set){ .n = 0 };
}

/* Returns the last file that begins at or before `at`. Empty files share their start with the next file. */
static int find_file_at(const struct token_set *s, const int64_t *first, int64_t at)
{
	int low = 0, high = s->n;

	while (high - low > 1) {
		int middle = low + (high - low) / 2;

		if (first[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void token_set_read(const struct token_set *s, int64_t first, int64_t n, int32_t *ret)
{
	for (int i = find_file_at(s, s->first, first); n > 0; i++) {
		int64_t left = s->first[i + 1] - first, take = left < n ? left : n;

		token_file_read(&s->file[i], first - s->first[i], take, ret);
		first += take;
		ret += take;
		n -= take;
	}
}

int64_t token_set_document(const struct token_set *s, int64_t i, int64_t *ret_begin)
{
	int file = find_file_at(s, s->document, i);
	int64_t own = i - s->document[file], before = own ? token_file_end(&s->file[file], own - 1) : 0,
		end = token_file_end(&s->file[file], own);

	if (before < 0 || end < 0)
		return -1;
	*ret_begin = s->first[file] + before;
	return s->first[file] + end;
}

void token_set_where(const struct token_set *s, int64_t token, char *ret, size_t bytes)
{
	int file = find_file_at(s, s->first, token);

	snprintf(ret, bytes, "%.200s: from token %lld on", s->name[file], (long long)(token - s->first[file]));
}

uint32_t token_set_sum(const struct token_set *s)
{
	uint32_t all = 0;

	if (s->n == 1)
		return token_file_sum(&s->file[0]);
	for (int i = 0; i < s->n; i++) {
		uint32_t one = token_file_sum(&s->file[i]);

		all = crc32c(all, &one, sizeof(one));
	}
	return all;
}
