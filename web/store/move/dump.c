/* dump.c: writes rows and files as canonical text. */
#include "web/store/move/dump.h"

#include <math.h>
#include <string.h>

#include "web/store/base/no_memory.h"

#define TEXT_BYTES ((size_t)1 << 16) /* buffered before a flush */

void dump_init(struct dump *d)
{
	*d = (struct dump){ .sink = NULL };
	buf_init(&d->text, (size_t)1 << 30);
	sha256_init(&d->sha);
}

void dump_done(struct dump *d)
{
	buf_done(&d->text);
}

static int flush_dump(struct dump *d, size_t least, struct err *err)
{
	int rc = 0;

	if (buf_failed(&d->text))
		return no_memory(err);
	if (d->text.len <= least)
		return 0;
	sha256_add(&d->sha, d->text.data, d->text.len);
	if (d->sink)
		rc = d->sink(d->arg, d->text.data, d->text.len, err);
	buf_reset(&d->text);
	return rc;
}

static void add_escaped_text(struct buf *to, const char *text)
{
	static const char escaped[] = "\\\t\n\r", letter[] = "\\tnr";
	size_t n;

	for (; *text; text += n + (text[n] != '\0')) {
		n = strcspn(text, escaped);
		buf_add(to, text, n);
		if (text[n]) {
			buf_addc(to, '\\');
			buf_addc(to, letter[strchr(escaped, text[n]) - escaped]);
		}
	}
}

static void add_hex_digits(struct buf *to, const unsigned char *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *at = buf_reserve(to, 2 * n);

	if (!at)
		return;
	for (size_t i = 0; i < n; i++) {
		*at++ = digits[bytes[i] >> 4];
		*at++ = digits[bytes[i] & 15];
	}
	to->len += 2 * n;
}

static void add_dump_value(struct buf *to, const struct db_value *v)
{
	bool null = (v->kind == 'x' && v->i == INT64_MIN) || (v->kind == 'd' && isnan(v->d)) ||
		    (v->kind == 't' && !v->at);

	if (null)
		buf_adds(to, "\\N");
	else if (v->kind == 'i' || v->kind == 'x')
		buf_addf(to, "%lld", (long long)v->i);
	else if (v->kind == 'd')
		buf_addf(to, "%.17g", v->d == 0 ? 0.0 : v->d);
	else if (v->kind == 't')
		add_escaped_text(to, v->at);
	else
		add_hex_digits(to, v->at, v->n);
}

int dump_row(void *dump, const struct db_row *r, struct err *err)
{
	struct dump *d = dump;

	if (r->table != d->last)
		buf_addf(&d->text, "table %s\n", r->table->name);
	d->last = r->table;
	for (int i = 0; i < r->n; i++) {
		if (i)
			buf_addc(&d->text, '\t');
		add_dump_value(&d->text, &r->values[i]);
	}
	buf_addc(&d->text, '\n');
	return flush_dump(d, TEXT_BYTES, err);
}

int dump_file(struct dump *d, const char *path, uint64_t bytes, const char *sha256, struct err *err)
{
	buf_adds(&d->text, "file ");
	add_escaped_text(&d->text, path);
	buf_addf(&d->text, "\t%llu\t%s\n", (unsigned long long)bytes, sha256);
	return flush_dump(d, TEXT_BYTES, err);
}

int dump_end(struct dump *d, char ret_sha256[65], struct err *err)
{
	int rc = flush_dump(d, 0, err);

	sha256_end(&d->sha, ret_sha256);
	return rc;
}
