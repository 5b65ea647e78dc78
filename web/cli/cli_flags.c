/* cli_flags.c: parses command line flags. Knows no command. */
#include "web/cli/cli_flags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS_NAME_MAX = 64, FLAGS_MAX = 64 };

static size_t min_of_three(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Number of edits that turn a into b (Levenshtein). */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[FLAGS_NAME_MAX + 1], n = strlen(b), i, k, diagonal, above;

	if (n > FLAGS_NAME_MAX)
		return n;
	for (k = 0; k <= n; k++)
		row[k] = k;
	for (i = 1; a[i - 1]; i++) {
		diagonal = row[0];
		row[0] = i;
		for (k = 1; k <= n; k++) {
			above = row[k];
			row[k] = min_of_three(above + 1, row[k - 1] + 1, diagonal + (a[i - 1] != b[k - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

const char *flags_nearest(const char *text, const char *const *candidates, size_t n)
{
	const char *best = NULL;
	size_t i, d, best_d = strlen(text) / 3 + 2;

	for (i = 0; i < n; i++) {
		d = strncmp(candidates[i], text, strlen(text)) ? edit_distance(text, candidates[i]) : 1;
		if (d < best_d) {
			best_d = d;
			best = candidates[i];
		}
	}
	return best;
}

static bool is_flag_name(const char *want, const char *given, size_t n)
{
	size_t i;

	if (strlen(want) != n)
		return false;
	for (i = 0; i < n; i++)
		if (want[i] != (given[i] == '_' ? '-' : given[i]))
			return false;
	return true;
}

static int fail_unknown_flag(const struct flag *table, const char *given, size_t n, struct err *err)
{
	const char *names[FLAGS_MAX], *near;
	char text[FLAGS_NAME_MAX];
	size_t count = 0;

	for (; table[count].name && count < FLAGS_MAX; count++)
		names[count] = table[count].name;
	snprintf(text, sizeof(text), "%.*s", (int)n, given);
	near = flags_nearest(text, names, count);
	if (near)
		return err_set(err, ERR_USAGE, "unknown flag --%s: did you mean --%s?", text, near);
	return err_set(err, ERR_USAGE, "unknown flag --%s: see --help", text);
}

/* Stores a value by the kind of its flag. */
static int store_flag_value(const struct flag *f, const char *value, struct err *err)
{
	struct flag_list *list = f->into;
	char *end;
	long v;

	switch (f->kind) {
	case FLAG_PATH:
		if (!*value)
			return err_set(err, ERR_USAGE, "--%s needs a value: %s", f->name, f->value);
		*(const char **)f->into = value;
		return 0;
	case FLAG_TEXT:
		*(const char **)f->into = value;
		return 0;
	case FLAG_LIST:
		list->items[list->count++] = value;
		return 0;
	case FLAG_NUMBER:
		errno = 0;
		v = strtol(value, &end, 10);
		if (errno || end == value || *end || v < f->min || v > f->max)
			return err_set(err, ERR_USAGE, "--%s %s: expected a number from %d to %d", f->name, value,
				       f->min, f->max);
		*(int *)f->into = (int)v;
		return 0;
	case FLAG_SWITCH:
		break;
	}
	return err_set(err, ERR_USAGE, "--%s takes no value", f->name);
}

int flags_read(const struct flag *table, int argc, char **argv, struct flag_list *words, struct err *err)
{
	bool only_words = false;
	const struct flag *f;
	const char *name, *value;
	size_t n;
	int i, rc;

	for (i = 0; i < argc; i++) {
		if (only_words || argv[i][0] != '-' || !argv[i][1]) {
			words->items[words->count++] = argv[i];
			continue;
		}
		if (!strcmp(argv[i], "--")) {
			only_words = true;
			continue;
		}
		name = strcmp(argv[i], "-h") ? argv[i] + strspn(argv[i], "-") : "help";
		n = strcspn(name, "=");
		value = name[n] ? name + n + 1 : NULL;
		for (f = table; f->name && !is_flag_name(f->name, name, n); f++)
			;
		if (!f->name)
			return fail_unknown_flag(table, name, n, err);
		if (f->kind == FLAG_SWITCH && !value) {
			*(bool *)f->into = true;
			continue;
		}
		if (f->kind != FLAG_SWITCH && !value && ++i == argc)
			return err_set(err, ERR_USAGE, "--%s needs a value: %s", f->name, f->value);
		rc = store_flag_value(f, value ? value : argv[i], err);
		if (rc)
			return rc;
	}
	return 0;
}
