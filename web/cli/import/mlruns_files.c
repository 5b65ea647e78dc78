/* SPDX-License-Identifier: Apache-2.0 */
/* mlruns_files.c: the files of MLflow's file store: texts, meta.yaml, lines of metrics, folders of keys. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tracker/base/file.h"
#include "web/cli/import/mlruns_inside.h"

#define META_MAX ((size_t)64 << 20)
#define DEPTH_MAX 32

int mlruns_text(const struct importer *b, struct arena *a, const char *path, const char **ret, struct err *err)
{
	struct file_map map = { 0 };
	int rc = b ? importer_map(b, &map, path, err) : file_map_open(&map, path, err);
	char *copy;

	if (rc)
		return rc;
	if (map.n > META_MAX)
		rc = err_set(err, ERR_LIMIT, "%s: too large", path);
	else if (map.n && memchr(map.bytes, 0, map.n))
		rc = err_set(err, ERR_CORRUPT, "%s: contains a NUL byte", path);
	copy = rc ? NULL : arena_alloc(a, map.n + 1);
	if (copy && map.n)
		memcpy(copy, map.bytes, map.n);
	file_map_close(&map);
	*ret = copy;
	return rc || copy ? rc : err_nomem(err, path);
}

int mlruns_meta(const struct importer *b, struct arena *a, const char *folder, struct yaml_pair **ret, struct err *err)
{
	const char *text;
	char path[4096];
	struct stat st;
	int rc;

	snprintf(path, sizeof(path), "%.4080s/meta.yaml", folder);
	if (stat(path, &st))
		return ERR_NOENT;
	rc = mlruns_text(b, a, path, &text, err);
	if (rc)
		return rc;
	*ret = NULL;
	rc = yaml_read(text, a, ret, err);
	if (!rc && !*ret)
		rc = err_set(err, ERR_CORRUPT, "empty");
	return rc ? err_prefix(err, "%s", path) : 0;
}

double mlruns_meta_time(struct mlruns *m, const struct yaml_pair *meta, const char *key, const char *folder)
{
	const char *text = yaml_get(meta, key);
	char *end;
	double ms = strtod(text, &end);

	if (!*text || (!*end && end > text && isfinite(ms)))
		return *text ? ms / 1e3 : 0;
	importer_leave_out(m->b, "%s/meta.yaml: %s: expected a number, found '%.40s'", folder, key, text);
	return 0;
}

int mlruns_skip(struct mlruns *m, int rc, const char *path, const struct err *why, struct err *err)
{
	if (rc != ERR_NOENT)
		return importer_skip(m->b, rc, why, err);
	importer_leave_out(m->b, "%s: its meta.yaml is missing", path);
	return 0;
}

/* A walk over the files below a folder; subfolders come from keys with slashes. */
struct key_walk {
	const char *below; /* path of the folder; its length tells where the key begins */
	struct mlruns *of;
	folder_fn *fn;
	void *arg;
	int depth;
};

static int visit_key_entry(void *arg, const char *path, const char *name, struct err *err)
{
	struct key_walk *k = arg;
	enum importer_entry kind = importer_entry(k->of->b, path);
	struct err why = ERR_INIT;
	int rc = 0;

	(void)name;
	if (kind == ENTRY_FILE) {
		rc = k->fn(k->arg, path, path + strlen(k->below) + 1, &why);
		rc = importer_skip(k->of->b, rc, &why, err);
	} else if (kind == ENTRY_FOLDER && k->depth < DEPTH_MAX) {
		k->depth++;
		rc = folder_each(path, visit_key_entry, k, err);
		k->depth--;
	} else if (kind == ENTRY_FOLDER) {
		importer_leave_out(k->of->b, "%s: folders are nested too deep", path);
	}
	return rc;
}

int mlruns_each(struct mlruns *of, const char *below, folder_fn *fn, void *arg, struct err *err)
{
	struct key_walk k = { below, of, fn, arg, 0 };
	struct stat st;

	if (!lstat(below, &st) && importer_entry(of->b, below) != ENTRY_FOLDER)
		return 0;
	return folder_each(below, visit_key_entry, &k, err);
}

struct pair_list {
	const struct importer *of;
	struct arena *arena; /* for the texts */
	json_t *list;
};

static int add_pair_file(void *arg, const char *path, const char *key, struct err *err)
{
	struct pair_list *p = arg;
	const char *text;
	int rc = mlruns_text(p->of, p->arena, path, &text, err);

	if (!rc)
		mlflow_pair(p->list, key, text);
	return rc;
}

int mlruns_pairs(struct mlruns *m, const char *folder, const char *what, json_t **ret, struct err *err)
{
	struct pair_list p = { m->b, arena_new(), json_array() };
	char below[4096];
	int rc;

	*ret = p.list;
	snprintf(below, sizeof(below), "%.4000s/%s", folder, what);
	rc = p.arena && p.list ? mlruns_each(m, below, add_pair_file, &p, err) : err_nomem(err, NULL);
	arena_free(p.arena);
	return rc;
}

/* Parses the number at *at, which ends at a blank or the end of the text, as Python's float does. Moves *at to the next
 * field. */
static bool parse_metric_number(const char **at, double *ret)
{
	size_t n = strcspn(*at, " ");
	const char *digits = *at + strspn(*at, "+-");
	char *end;

	*ret = strtod(*at, &end);
	if (!n || end != *at + n || (isfinite(*ret) && strspn(digits, "0123456789.eE+-") != n - (size_t)(digits - *at)))
		return false;
	*at = end + (*end == ' ');
	return true;
}

/* Parses "time value [step]"; points of a data set or a model have more fields after these. */
static bool parse_metric_line(const char *text, struct mlruns_point *l)
{
	double ms;
	char *end;

	if (!parse_metric_number(&text, &ms) || !isfinite(ms) || !parse_metric_number(&text, &l->value))
		return false;
	l->wall_s = ms / 1e3;
	l->step = 0;
	if (!*text)
		return true; /* MLflow's oldest form has no step */
	errno = 0;
	l->step = strtoll(text, &end, 10);
	return !errno && end > text && (!*end || *end == ' ');
}

int mlruns_lines(struct mlruns *m, const char *path, const struct mlruns_reader *r, struct err *err)
{
	const char *text;
	char first[200] = "", *line, *next;
	int rc = mlruns_text(m->b, m->scratch, path, &text, err), number = 0;

	for (line = (char *)(uintptr_t)text; rc >= 0 && (next = strchr(line, '\n')); line = next + 1) {
		struct mlruns_point p;

		*(next > line && next[-1] == '\r' ? next - 1 : next) = '\0';
		number++;
		rc = parse_metric_line(line, &p) ? r->fn(r->arg, line, &p, err) : 1;
		if (rc <= 0)
			continue;
		if (!*first)
			snprintf(first, sizeof(first), "line %d: expected %s; found '%.80s'", number, r->expected,
				 line);
		importer_leave_out(m->b, "a point of %s: %s", path, first);
	}
	if (rc < 0)
		return rc;
	if (*line)
		importer_leave_out(m->b, "a point of %s: line %d does not end in a line feed: '%.80s'", path,
				   number + 1, line);
	return 0;
}
