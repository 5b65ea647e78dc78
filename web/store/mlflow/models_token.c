/* models_token.c: a token has lines: the position, the experiments, the order and the filter (last, because it may
 * have several lines). Values are in Python's syntax, like MLflow's: ['1', '2'], None. */
#include "web/store/mlflow/models_token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/buf.h"

#define TOKEN_MAX ((size_t)8 << 20) /* bytes; requests are smaller */

/* A Python string, with the quotes that need fewer escapes. */
static void print_quoted_text(struct buf *out, const char *text)
{
	char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';

	buf_addf(out, "%c", quote);
	for (; *text; text++)
		if (*text == '\n')
			buf_adds(out, "\\n");
		else if (*text == '\\' || *text == quote)
			buf_addf(out, "\\%c", *text);
		else
			buf_addf(out, "%c", *text);
	buf_addf(out, "%c", quote);
}

static void print_optional(struct buf *out, const char *key, const char *text)
{
	buf_addf(out, ", '%s': ", key);
	if (text)
		print_quoted_text(out, text);
	else
		buf_adds(out, "None");
}

static void print_experiment_ids(struct buf *out, const struct models_opts *o)
{
	buf_adds(out, "[");
	for (size_t i = 0; i < o->experiment_count; i++)
		buf_addf(out, "%s'%" PRId64 "'", i ? ", " : "", o->experiments[i]);
	buf_adds(out, "]");
}

static void print_order(struct buf *out, const struct models_opts *o)
{
	if (!o->order_count)
		buf_adds(out, "None");
	for (size_t i = 0; i < o->order_count; i++) {
		buf_adds(out, i ? ", {'field_name': " : "[{'field_name': ");
		print_quoted_text(out, o->order[i].field);
		buf_addf(out, ", 'ascending': %s", o->order[i].descending ? "False" : "True");
		print_optional(out, "dataset_name", o->order[i].dataset.name);
		print_optional(out, "dataset_digest", o->order[i].dataset.digest);
		buf_adds(out, i + 1 < o->order_count ? "}" : "}]");
	}
}

static void print_search(struct buf *out, const struct models_opts *o)
{
	print_experiment_ids(out, o);
	buf_addc(out, '\n');
	print_order(out, o);
	buf_addc(out, '\n');
	buf_adds(out, o->filter && *o->filter ? o->filter : "None");
}

const char *models_token_write(struct arena *a, const struct models_opts *o, size_t place)
{
	const char *token = NULL;
	struct buf text;

	buf_init(&text, TOKEN_MAX);
	buf_addf(&text, "%zu\n", place);
	print_search(&text, o);
	if (!buf_failed(&text))
		token = arena_strdup(a, text.data);
	buf_done(&text);
	return token;
}

/* Length of the first line. */
static size_t line_length(const char *text)
{
	return strcspn(text, "\n");
}

static int compare_searches(const char *expected, const char *found, struct err *err)
{
	static const char *const parts[][2] = { { "Experiment IDs", "experiment IDs" },
						{ "Order by", "order by" },
						{ "Filter string", "filter string" } };

	for (int i = 0; i < 3; i++) {
		size_t e = i < 2 ? line_length(expected) : strlen(expected),
		       f = i < 2 ? line_length(found) : strlen(found);

		if (e != f || memcmp(expected, found, e) != 0)
			return err_set(err, ERR_USAGE,
				       "%s in the page token do%s not match the requested %s. Expected: %.*s. Found: "
				       "%.*s",
				       parts[i][0], i ? "es" : "", parts[i][1], (int)e, expected, (int)f, found);
		expected += e + (i < 2);
		found += f + (i < 2 && found[f]);
	}
	return 0;
}

int models_token_read(size_t *ret, const struct models_opts *o, struct err *err)
{
	struct buf expected;
	int end = 0, rc;

	*ret = 0;
	if (!o->page_token || !*o->page_token)
		return 0;
	if (sscanf(o->page_token, "%9zu%n", ret, &end) != 1 || o->page_token[end] != '\n' || *o->page_token == '-')
		return err_set(err, ERR_USAGE, "Invalid page token: '%.60s'", o->page_token);
	buf_init(&expected, TOKEN_MAX);
	print_search(&expected, o);
	rc = buf_failed(&expected) ? err_set(err, ERR_NOMEM, "out of memory: page token")
				   : compare_searches(expected.data, o->page_token + end + 1, err);
	buf_done(&expected);
	return rc;
}
