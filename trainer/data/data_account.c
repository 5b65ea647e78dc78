/* SPDX-License-Identifier: Apache-2.0 */
/* data_account.c: counts by kind and by reason, the walk over a folder, and the account in words. */
#include "trainer/data/data_account.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const unit_names[DATA_ACCOUNT_UNITS] = { [DATA_ACCOUNT_FILES] = "file",
							    [DATA_ACCOUNT_SAMPLES] = "sample" };

/* Writes the extension of a file's name in lower case ("jpg", "tar.gz"), or "" if it has none. */
static void data_account_extension(const char *name, char ret[DATA_ACCOUNT_KIND_BYTES])
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
	size_t n;

	ret[0] = '\0';
	if (!dot || dot == base || !dot[1])
		return;
	if (!strcasecmp(dot, ".gz") || !strcasecmp(dot, ".zst") || !strcasecmp(dot, ".bz2") || !strcasecmp(dot, ".xz"))
		for (const char *before = dot - 1; before > base; before--)
			if (*before == '.') {
				dot = before;
				break;
			}
	n = strlen(dot + 1);
	if (n >= DATA_ACCOUNT_KIND_BYTES)
		return;
	for (size_t i = 0; i <= n; i++)
		ret[i] = (char)tolower((unsigned char)dot[1 + i]);
}

void data_account_use_kind(struct data_account *a, const char *kind, int64_t n)
{
	int i = 0;

	if (!a || n <= 0)
		return;
	while (i < a->n_used && strcmp(a->used[i].name, kind))
		i++;
	if (i == a->n_used && i == DATA_ACCOUNT_KINDS) {
		i--;
		snprintf(a->used[i].name, sizeof(a->used[i].name), "other");
	} else if (i == a->n_used) {
		a->n_used++;
		snprintf(a->used[i].name, sizeof(a->used[i].name), "%s", kind);
		a->used[i].n = 0;
	}
	a->used[i].n += n;
}

void data_account_use(struct data_account *a, const char *name)
{
	char kind[DATA_ACCOUNT_KIND_BYTES];

	data_account_extension(name, kind);
	data_account_use_kind(a, *kind ? kind : "without extension", 1);
}

/* Returns the entry of a reason, a new one if needed; the last entry takes everything when the table is full. */
static struct data_account_reason *find_reason(struct data_account *a, enum data_account_unit unit, const char *why)
{
	struct data_account_reason *r;

	for (int i = 0; i < a->n_left; i++)
		if (a->left[i].unit == unit && !strcmp(a->left[i].why, why))
			return &a->left[i];
	for (int i = a->n_left - 1; a->n_left == DATA_ACCOUNT_REASONS && i >= 0; i--)
		if (a->left[i].unit == unit) {
			snprintf(a->left[i].why, sizeof(a->left[i].why), "various reasons");
			return &a->left[i];
		}
	r = &a->left[a->n_left < DATA_ACCOUNT_REASONS ? a->n_left++ : DATA_ACCOUNT_REASONS - 1];
	*r = (struct data_account_reason){ .unit = unit };
	snprintf(r->why, sizeof(r->why), "%s", why);
	return r;
}

static void leave_out(struct data_account *a, const struct data_account_reason *what)
{
	struct data_account_reason *r;

	if (!a || what->n <= 0)
		return;
	r = find_reason(a, what->unit, what->why);
	r->n += what->n;
	if (what->example[0] && (!r->example[0] || strcmp(what->example, r->example) < 0))
		snprintf(r->example, sizeof(r->example), "%s", what->example);
}

void data_account_leave_file(struct data_account *a, const char *name, const char *why, ...)
{
	struct data_account_reason r = { .unit = DATA_ACCOUNT_FILES, .n = 1 };
	va_list args;

	va_start(args, why);
	vsnprintf(r.why, sizeof(r.why), why, args);
	va_end(args);
	snprintf(r.example, sizeof(r.example), "%s", name);
	leave_out(a, &r);
}

void data_account_leave_samples(struct data_account *a, int64_t n, const char *example, const char *why, ...)
{
	struct data_account_reason r = { .unit = DATA_ACCOUNT_SAMPLES, .n = n };
	va_list args;

	va_start(args, why);
	vsnprintf(r.why, sizeof(r.why), why, args);
	va_end(args);
	snprintf(r.example, sizeof(r.example), "%s", example ? example : "");
	leave_out(a, &r);
}

void data_account_leave_unknown(struct data_account *a, const char *name)
{
	char extension[DATA_ACCOUNT_KIND_BYTES];

	data_account_extension(name, extension);
	data_account_leave_file(a, name, *extension ? "not part of the set (.%s)" :
			   "not part of the set (without extension%s)", extension);
}

bool data_account_hides(const char *name)
{
	static const char *const others[] = { "Thumbs.db", "desktop.ini", "__MACOSX" };
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcasecmp(base, others[i]))
			return true;
	return name[0] == '.' || strstr(name, "/.");
}

void data_account_hide(struct data_account *a, const char *name)
{
	a->hidden += strcmp(name, ".") && strcmp(name, "..") && strcmp(name, DATA_ACCOUNT_CACHE);
}

void data_account_add(struct data_account *to, const struct data_account *from, const char *folder)
{
	for (int i = 0; i < from->n_used; i++)
		data_account_use_kind(to, from->used[i].name, from->used[i].n);
	for (int i = 0; i < from->n_left; i++) {
		struct data_account_reason r = from->left[i];

		if (r.example[0] && *folder)
			snprintf(r.example, sizeof(r.example), "%.100s/%.130s", folder, from->left[i].example);
		leave_out(to, &r);
	}
	to->hidden += from->hidden;
}

int64_t data_account_used(const struct data_account *a)
{
	int64_t n = 0;

	for (int i = 0; i < a->n_used; i++)
		n += a->used[i].n;
	return n;
}

int64_t data_account_left(const struct data_account *a, enum data_account_unit unit)
{
	int64_t n = 0;

	for (int i = 0; i < a->n_left; i++)
		n += a->left[i].unit == unit ? a->left[i].n : 0;
	return n;
}

void data_account_say_used(const struct data_account *a, struct buf *out)
{
	bool said[DATA_ACCOUNT_KINDS] = { false };

	for (int k = 0; k < a->n_used; k++) {
		int best = -1;

		for (int i = 0; i < a->n_used; i++)
			if (!said[i] && (best < 0 || a->used[i].n > a->used[best].n))
				best = i;
		said[best] = true;
		buf_addf(out, "%s%lld %s%s", k ? ", " : "", (long long)a->used[best].n,
			 strchr(a->used[best].name, ' ') || !strcmp(a->used[best].name, "other") ? "" : ".",
			 a->used[best].name);
	}
}

void data_account_say_left(const struct data_account *a, int most, struct buf *out)
{
	int64_t n[DATA_ACCOUNT_UNITS] = { data_account_left(a, DATA_ACCOUNT_FILES),
					  data_account_left(a, DATA_ACCOUNT_SAMPLES) };

	if (!n[DATA_ACCOUNT_FILES] && !n[DATA_ACCOUNT_SAMPLES])
		return;
	buf_adds(out, "left out ");
	for (int u = 0; u < DATA_ACCOUNT_UNITS; u++)
		if (n[u])
			buf_addf(out, "%s%lld %s%s", u && n[0] ? " and " : "", (long long)n[u], unit_names[u],
				 n[u] == 1 ? "" : "s");
	for (int i = 0; i < a->n_left && i < most; i++) {
		const struct data_account_reason *r = &a->left[i];

		buf_adds(out, i ? "; " : ": ");
		if (a->n_left > 1)
			buf_addf(out, "%lld: ", (long long)r->n);
		buf_adds(out, r->why);
		if (r->example[0])
			buf_addf(out, " (%s)", r->example);
	}
	if (a->n_left > most)
		buf_addf(out, "; and %d more reason%s", a->n_left - most, a->n_left - most == 1 ? "" : "s");
}

/* ---- the files of a folder ---- */

struct account_walk {
	struct data_account *a;
	const char *root;
	const struct data_account_rule *rule;
	struct data_account_path path;
};

static void count_walked_file(struct account_walk *w, const char *name)
{
	char why[DATA_ACCOUNT_TEXT_BYTES] = "";
	enum data_account_fate fate = w->rule->fate(w->rule->user, name, why);

	if (fate == DATA_ACCOUNT_USED)
		data_account_use(w->a, name);
	else if (fate == DATA_ACCOUNT_LEFT && *why)
		data_account_leave_file(w->a, name, "%s", why);
	else if (fate == DATA_ACCOUNT_LEFT)
		data_account_leave_unknown(w->a, name);
}

bool data_account_enter(struct data_account_path *p, const struct stat *st, int depth)
{
	if (depth >= DATA_ACCOUNT_DEPTH)
		return false;
	for (int i = 0; i < depth; i++)
		if (p->device[i] == st->st_dev && p->inode[i] == st->st_ino)
			return false;
	p->device[depth] = st->st_dev;
	p->inode[depth] = st->st_ino;
	return true;
}

static void walk_account_folder(struct account_walk *w, const char *name, int depth);

/* Counts one entry of a folder; `name` is its name relative to the root. */
static void walk_account_entry(struct account_walk *w, const char *name, int depth)
{
	char path[PATH_MAX], folder[PATH_MAX], why[DATA_ACCOUNT_TEXT_BYTES] = "";
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", w->root, name) >= (int)sizeof(path) || stat(path, &st)) {
		data_account_leave_file(w->a, name, "%s", strerror(errno));
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		count_walked_file(w, name);
		return;
	}
	snprintf(folder, sizeof(folder), "%.4000s/", name);
	if (w->rule->fate(w->rule->user, folder, why) == DATA_ACCOUNT_COUNTED)
		return;
	if (data_account_enter(&w->path, &st, depth + 1))
		walk_account_folder(w, name, depth + 1);
	else
		data_account_leave_file(w->a, name, "a link to a folder above it");
}

static void walk_account_folder(struct account_walk *w, const char *name, int depth)
{
	char path[PATH_MAX], below[PATH_MAX];
	struct dirent *e;
	DIR *d = NULL;

	if (snprintf(path, sizeof(path), "%s/%s", w->root, name) < (int)sizeof(path))
		d = opendir(path);
	if (!d) {
		data_account_leave_file(w->a, name, "%s", strerror(errno));
		return;
	}
	while ((e = readdir(d))) {
		if (data_account_hides(e->d_name))
			data_account_hide(w->a, e->d_name);
		else if (snprintf(below, sizeof(below), "%s%s%s", name, *name ? "/" : "", e->d_name) <
			 (int)sizeof(below))
			e->d_type == DT_REG ? count_walked_file(w, below) : walk_account_entry(w, below, depth);
	}
	closedir(d);
}

void data_account_walk(struct data_account *a, const char *folder, const struct data_account_rule *rule)
{
	struct account_walk w = { .a = a, .root = folder, .rule = rule };
	struct stat st;

	if (!stat(folder, &st))
		data_account_enter(&w.path, &st, 0);
	walk_account_folder(&w, "", 0);
}
