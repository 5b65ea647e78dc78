/* SPDX-License-Identifier: Apache-2.0 */
/* tar_walk.c: parses and builds headers; walks header by header through a window of the archive. */
#include "trainer/data/container/tar_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"

/* ---- the fields of a header ---- */

#define TAR_BYTES_MAX ((uint64_t)1 << 50) /* per entry */

enum tar_kind {
	TAR_FILE,
	TAR_PAX,       /* contains pax records for the next entry */
	TAR_LONG_NAME, /* contains the name of the next entry (GNU) */
	TAR_OTHER,     /* folder, link or other type: skipped */
	TAR_END,       /* zeros */
	TAR_DAMAGED,   /* invalid */
};

struct tar_block {
	enum tar_kind kind;
	uint64_t bytes; /* size of the content; stored rounded up to whole blocks */
	char name[257];
};

enum { AT_MODE = 100, AT_UID = 108, AT_GID = 116, AT_BYTES = 124, AT_TIME = 136, AT_SUM = 148, AT_TYPE = 156,
       AT_MAGIC = 257, AT_PREFIX = 345 };

/* Parses octal digits up to a space or NUL. False: another character. */
static bool parse_octal_field(const char *text, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	while (i < n && text[i] == ' ')
		i++;
	for (; i < n && text[i] && text[i] != ' '; i++) {
		if (text[i] < '0' || text[i] > '7' || v >> 60)
			return false;
		v = v * 8 + (uint64_t)(text[i] - '0');
	}
	*ret = v;
	return true;
}

/* Parses octal digits, or GNU's big-endian number after a byte 0x80. */
static bool parse_size_field(const char *text, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if ((unsigned char)text[0] != 0x80)
		return parse_octal_field(text, n, ret);
	for (size_t i = 1; i < n; i++) {
		if (v >> 55)
			return false;
		v = v << 8 | (unsigned char)text[i];
	}
	*ret = v;
	return true;
}

/* Sum of the header's bytes, with the checksum field counted as spaces. */
static uint64_t sum_tar_header(const char *block)
{
	uint64_t sum = 0;

	for (int i = 0; i < TAR_BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : (unsigned char)block[i];
	return sum;
}

static bool is_zero_block(const char *block)
{
	for (int i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static enum tar_kind tar_kind_of_type(char type, const char *name)
{
	switch (type) {
	case '\0': /* v7: a folder's name ends in a slash */
		return *name && name[strlen(name) - 1] == '/' ? TAR_OTHER : TAR_FILE;
	case '0':
	case '7':
		return TAR_FILE;
	case 'x':
		return TAR_PAX;
	case 'L':
		return TAR_LONG_NAME;
	default:
		return TAR_OTHER;
	}
}

/* Parses a header of TAR_BLOCK bytes. */
static void parse_tar_block(const char *b, struct tar_block *ret)
{
	bool prefixed = !memcmp(b + AT_MAGIC, "ustar", 6) && b[AT_PREFIX]; /* GNU's magic continues with a space */
	uint64_t sum;

	*ret = (struct tar_block){ .kind = TAR_DAMAGED };
	if (is_zero_block(b)) {
		ret->kind = TAR_END;
		return;
	}
	if (!parse_octal_field(b + AT_SUM, 8, &sum) || sum != sum_tar_header(b) ||
	    !parse_size_field(b + AT_BYTES, 12, &ret->bytes) || ret->bytes > TAR_BYTES_MAX)
		return;
	snprintf(ret->name, sizeof(ret->name), "%.155s%s%.100s", prefixed ? b + AT_PREFIX : "", prefixed ? "/" : "", b);
	ret->kind = tar_kind_of_type(b[AT_TYPE], ret->name);
	if (strchr("12345", b[AT_TYPE]) && b[AT_TYPE])
		ret->bytes = 0; /* links, devices and folders have no content, whatever the size field */
}

void tar_block_make(void *block, const char *name, uint64_t bytes)
{
	char *b = block;

	memset(b, 0, TAR_BLOCK);
	snprintf(b, 100, "%.99s", name);
	memcpy(b + AT_MODE, "0000644", 7);
	memcpy(b + AT_UID, "0000000", 7);
	memcpy(b + AT_GID, "0000000", 7);
	if (bytes >> 33) {
		b[AT_BYTES] = (char)0x80;
		for (int i = 0; i < 8; i++)
			b[AT_BYTES + 11 - i] = (char)(bytes >> 8 * i);
	} else {
		snprintf(b + AT_BYTES, 12, "%011llo", (unsigned long long)bytes);
	}
	memcpy(b + AT_TIME, "00000000000", 11);
	b[AT_TYPE] = '0';
	memcpy(b + AT_MAGIC, "ustar\00000", 8);
	snprintf(b + AT_SUM, 8, "%06o", (unsigned)sum_tar_header(b));
	b[AT_SUM + 7] = ' ';
}

/* ---- the entries of an archive ---- */

#define WINDOW ((size_t)1 << 18)
#define GLANCE ((size_t)1 << 11) /* read size between large entries: a header, and a small entry that may follow it */
#define RECORDS_MAX ((uint64_t)1 << 16)

struct tar_walk {
	struct byte_source s;
	uint64_t at;	 /* offset of the next header */
	uint64_t from;	 /* offset of the window */
	size_t have;	 /* bytes in the window */
	bool small;	 /* entries are small: whole windows are read */
	uint64_t damage; /* where the damage began; UINT64_MAX: none */
	/* What extended headers state about the next entry: */
	char name[TAR_WALK_NAME_MAX + 1];
	bool has_name, has_bytes;
	uint64_t bytes;
	char window[WINDOW];
};

struct tar_walk *tar_walk_new(const struct byte_source *s)
{
	struct tar_walk *w = mem_alloc(sizeof(*w));

	memset(w, 0, offsetof(struct tar_walk, window));
	w->s = *s;
	w->damage = UINT64_MAX;
	return w;
}

void tar_walk_free(struct tar_walk *w)
{
	free(w);
}

int tar_walk_bytes(struct tar_walk *w, uint64_t offset, size_t n, const char **ret, struct err *err)
{
	uint64_t left = w->s.bytes - offset;
	size_t want = w->small ? WINDOW : GLANCE;
	int rc;

	if (offset > w->s.bytes || n > left || n > WINDOW)
		return err_set(err, ERR_CORRUPT, "%.300s: is truncated", w->s.name);
	if (offset < w->from || offset + n > w->from + w->have) {
		want = want < n ? n : want;
		want = want > left ? (size_t)left : want;
		w->have = 0;
		rc = w->s.read(w->s.user, offset, w->window, want, err);
		if (rc)
			return rc;
		w->from = offset;
		w->have = want;
	}
	*ret = w->window + (offset - w->from);
	return 0;
}

/* Parses a run of digits up to `end`. False: another character, or empty. */
static bool parse_decimal_run(const char *at, const char *end, uint64_t *ret)
{
	uint64_t v = 0;

	if (at == end)
		return false;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9' || v > TAR_BYTES_MAX)
			return false;
		v = v * 10 + (uint64_t)(*at - '0');
	}
	*ret = v;
	return true;
}

static bool store_entry_name(struct tar_walk *w, const char *text, size_t n)
{
	n = strnlen(text, n);
	if (!n || n > TAR_WALK_NAME_MAX)
		return false;
	memcpy(w->name, text, n);
	w->name[n] = '\0';
	w->has_name = true;
	return true;
}

/* Applies a record "LENGTH KEY=VALUE\n"; LENGTH covers the whole record. Only the keys path and size matter. */
static bool apply_pax_record(struct tar_walk *w, const char *record, size_t n)
{
	const char *key = memchr(record, ' ', n), *value, *end = record + n - 1;

	if (!key++ || *end != '\n' || !(value = memchr(key, '=', (size_t)(end - key))))
		return false;
	value++;
	if (value - key == 5 && !memcmp(key, "path=", 5))
		return store_entry_name(w, value, (size_t)(end - value));
	if (value - key == 5 && !memcmp(key, "size=", 5))
		return w->has_bytes = parse_decimal_run(value, end, &w->bytes);
	return true;
}

static bool apply_pax_records(struct tar_walk *w, const char *text, size_t n)
{
	while (n) {
		const char *space = memchr(text, ' ', n);
		uint64_t length;

		if (!space || !parse_decimal_run(text, space, &length) || length > n ||
		    length < (uint64_t)(space - text) + 3 || !apply_pax_record(w, text, (size_t)length))
			return false;
		text += length;
		n -= (size_t)length;
	}
	return true;
}

/* Reads an entry that describes the next one. *ret_whole false: damaged. */
static int read_extension_entry(struct tar_walk *w, const struct tar_block *b, bool *ret_whole, struct err *err)
{
	const char *text;
	int rc;

	*ret_whole = b->bytes && b->bytes <= RECORDS_MAX && b->bytes <= w->s.bytes - w->at - TAR_BLOCK;
	if (!*ret_whole)
		return 0;
	rc = tar_walk_bytes(w, w->at + TAR_BLOCK, (size_t)b->bytes, &text, err);
	if (rc)
		return rc;
	*ret_whole = b->kind == TAR_PAX ? apply_pax_records(w, text, (size_t)b->bytes)
					: store_entry_name(w, text, (size_t)b->bytes);
	return 0;
}

static void return_damage(struct tar_walk *w, struct tar_walk_entry *ret)
{
	*ret = (struct tar_walk_entry){ .offset = w->damage, .bytes = w->at - w->damage };
	w->damage = UINT64_MAX;
}

/* Handles a valid header. Returns 1 if it fills *ret, 0 if the header is not a file's or its entry is damaged. */
static int consume_header(struct tar_walk *w, struct tar_block *b, struct tar_walk_entry *ret, struct err *err)
{
	uint64_t room = w->s.bytes - w->at - TAR_BLOCK;
	bool whole = true, extends = b->kind == TAR_PAX || b->kind == TAR_LONG_NAME;
	int rc;

	if (extends) {
		rc = read_extension_entry(w, b, &whole, err);
		if (rc)
			return rc;
	} else if (w->has_bytes) {
		b->bytes = w->bytes;
	}
	if (!whole || b->bytes > room) {
		w->damage = w->at;
		w->at += TAR_BLOCK;
		w->has_name = w->has_bytes = false;
		return 0;
	}
	if (!w->has_name)
		snprintf(w->name, sizeof(w->name), "%s", b->name);
	*ret = (struct tar_walk_entry){ w->name, w->at + TAR_BLOCK, b->bytes };
	w->at += TAR_BLOCK + tar_block_padded(b->bytes);
	w->at = w->at > w->s.bytes ? w->s.bytes : w->at;
	w->small = b->bytes < WINDOW / 4;
	if (!extends)
		w->has_name = w->has_bytes = false;
	return b->kind == TAR_FILE;
}

/* Skips zero blocks. They end at the end of the archive, unless data follow its end mark, which is then damage. */
static int skip_zero_blocks(struct tar_walk *w, struct err *err)
{
	uint64_t began = w->at;
	const char *text;

	w->small = true;
	for (; w->s.bytes - w->at >= TAR_BLOCK; w->at += TAR_BLOCK) {
		int rc = tar_walk_bytes(w, w->at, TAR_BLOCK, &text, err);

		if (rc)
			return rc;
		for (int i = 0; i < TAR_BLOCK; i++)
			if (text[i]) {
				w->damage = w->damage == UINT64_MAX ? began : w->damage;
				return 0;
			}
	}
	w->at = w->s.bytes;
	return 0;
}

int tar_walk_next(struct tar_walk *w, struct tar_walk_entry *ret, struct err *err)
{
	while (w->s.bytes - w->at >= TAR_BLOCK) {
		struct tar_block b;
		const char *block;
		int rc = tar_walk_bytes(w, w->at, TAR_BLOCK, &block, err);

		if (rc)
			return rc;
		parse_tar_block(block, &b);
		if (w->damage != UINT64_MAX && b.kind != TAR_DAMAGED && b.kind != TAR_END) {
			return_damage(w, ret);
			return 1;
		}
		if (b.kind == TAR_END) {
			rc = skip_zero_blocks(w, err);
		} else if (b.kind == TAR_DAMAGED) {
			w->damage = w->damage == UINT64_MAX ? w->at : w->damage;
			w->at += TAR_BLOCK;
			w->small = true;
			w->has_name = w->has_bytes = false;
		} else {
			rc = consume_header(w, &b, ret, err);
		}
		if (rc)
			return rc;
	}
	if (w->s.bytes > w->at && w->damage == UINT64_MAX)
		w->damage = w->at;
	w->at = w->s.bytes;
	if (w->damage == UINT64_MAX)
		return 0;
	return_damage(w, ret);
	return 1;
}
