/* SPDX-License-Identifier: Apache-2.0 */
/* lmdb.c: walks the B+ tree. Two meta pages locate the root; the newer one counts. A page has a header (number,
 * flags, start of its free space), a table of offsets, and nodes. A leaf node holds the key and the value, or the
 * number of the first of several consecutive overflow pages with the value (github.com/LMDB/lmdb, mdb.c: MDB_page,
 * MDB_node, MDB_meta). Input is untrusted: offsets are checked against the page, pages against the file, and a walk
 * visits at most as many pages as the file has. */
#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/little.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/webdataset.h"
#include "trainer/data/container/wire_formats.h"

#define MAGIC 0xBEEFC0DEu
#define VERSION 1
#define META_BYTES 152u /* header and the fields that are read */
#define PAGE_LEAST 512u
#define PAGE_MOST 65536u
#define HEAD 16u /* page header, in front of the offsets */
#define NODE 8u	 /* node header, in front of the key */
#define DEPTH_MAX 32
#define KEY_MAX 511
#define PEEK 512u /* bytes of a value that are read at once: enough for a Datum's fields before or after its picture   \
		   */
#define NONE UINT64_MAX

enum page_flag { BRANCH = 1, LEAF = 2, LEAF2 = 0x20 };
enum node_flag { BIG = 1, SUB = 2, MANY = 4 };
enum tree_flag { DUPLICATES = 4 };
enum kind { UNKNOWN, ENTRIES, DATUMS };

struct lmdb_walk {
	struct samples *to;
	const struct byte_source *file;
	uint32_t object;
	uint64_t pages; /* in the file */
	uint64_t left;	/* pages that the walk may still visit */
	uint32_t page_bytes;
	enum kind kind;
	struct webdataset_groups *groups;
	char label[WEBDATASET_LABEL_MAX];
	unsigned char *page[DEPTH_MAX];
	unsigned char peek[PEEK];
};

struct meta {
	uint32_t page_bytes;
	uint64_t root, last, transaction; /* NONE: empty tree; last page; the higher transaction is newer */
	uint32_t flags;
	bool good;
};

bool lmdb_probe(const void *head)
{
	return little_get_u32((const unsigned char *)head + HEAD) == MAGIC;
}

static int refuse_lmdb(const struct lmdb_walk *w, const char *why, struct err *err)
{
	return err_set(err, ERR_USAGE, "%.150s: %s", w->file->name, why);
}

/* ---- the root of the tree ---- */

/* Reads the meta page at `at`. ret->good is false if it is not a sound one. */
static int read_lmdb_meta(const struct lmdb_walk *w, uint64_t at, struct meta *ret, struct err *err)
{
	unsigned char b[META_BYTES];
	const unsigned char *free_tree = b + HEAD + 24, *main_tree = free_tree + 48, *last_page = main_tree + 48;
	int rc;

	*ret = (struct meta){ .good = false };
	if (at + META_BYTES > w->file->bytes)
		return 0;
	rc = w->file->read(w->file->user, at, b, sizeof(b), err);
	if (rc || little_get_u32(b + HEAD) != MAGIC)
		return rc;
	if (little_get_u32(b + HEAD + 4) != VERSION)
		return refuse_lmdb(
			w,
			"is not an LMDB 0.9 database: convert one of LMDB 1.0 by mdb_dump -f d OLD with 1.0's "
			"program, then mdb_load -f d NEW with 0.9's (Debian: lmdb-utils)",
			err);
	*ret = (struct meta){ .page_bytes = little_get_u32(free_tree),
			      .flags = little_get_u16(main_tree + 4),
			      .root = little_get_u64(main_tree + 40),
			      .last = little_get_u64(last_page),
			      .transaction = little_get_u64(last_page + 8) };
	ret->good = ret->page_bytes >= PAGE_LEAST && ret->page_bytes <= PAGE_MOST &&
		    !(ret->page_bytes & (ret->page_bytes - 1));
	return 0;
}

/* Chooses the newer meta page and returns the root page of the tree. */
static int find_lmdb_root(struct lmdb_walk *w, uint64_t *ret, struct err *err)
{
	struct meta m[2];
	int rc = read_lmdb_meta(w, 0, &m[0], err);

	if (!rc && !m[0].good)
		return refuse_lmdb(w, "its first page is damaged: no page size", err);
	if (!rc)
		rc = read_lmdb_meta(w, m[0].page_bytes, &m[1], err);
	if (rc)
		return rc;
	if (m[1].good && m[1].page_bytes == m[0].page_bytes && m[1].transaction > m[0].transaction)
		m[0] = m[1];
	if (m[0].flags & DUPLICATES)
		return refuse_lmdb(w, "a key has several values (MDB_DUPSORT): write one value per key", err);
	w->page_bytes = m[0].page_bytes;
	w->pages = w->file->bytes / w->page_bytes;
	w->left = w->pages;
	*ret = m[0].root;
	if (m[0].last >= w->pages)
		samples_lose(w->to, "%.150s: is truncated: it has %llu of its %llu pages", w->file->name,
			     (unsigned long long)w->pages, (unsigned long long)m[0].last + 1);
	return 0;
}

/* ---- values ---- */

struct value {
	char key[KEY_MAX + 1]; /* for messages: unprintable bytes are '?' */
	uint64_t offset, bytes;
};

/* Reads up to PEEK bytes of a value at offset `at` into w->peek; *ret: their number. */
static int read_value_window(struct lmdb_walk *w, const struct value *v, uint64_t at, size_t *ret, struct err *err)
{
	*ret = v->bytes - at < PEEK ? (size_t)(v->bytes - at) : PEEK;
	return w->file->read(w->file->user, v->offset + at, w->peek, *ret, err);
}

struct datum {
	uint64_t picture, bytes; /* within the value */
	uint64_t label;
	bool whole, encoded, floats;
};

/* Parses a Datum field by field and skips the pixels. Field 4 is the data, 5 the label, 6 float data, 7 whether the
 * data is an encoded picture. */
static int read_datum(struct lmdb_walk *w, const struct value *v, struct datum *ret, struct err *err)
{
	uint64_t at = 0;

	*ret = (struct datum){ .label = NONE };
	while (at < v->bytes) {
		struct proto_field f;
		struct proto_span s;
		size_t n;
		int rc = read_value_window(w, v, at, &n, err);

		if (rc)
			return rc;
		s = (struct proto_span){ w->peek, w->peek + n };
		if (!proto_head(&s, &f) || f.number < 1 || f.number > 7)
			return 0;
		at += (uint64_t)(s.at - w->peek);
		if (f.wire != PROTO_VARINT && f.value > v->bytes - at)
			return 0;
		if (f.number == 4 && f.wire == PROTO_BYTES) {
			ret->picture = at;
			ret->bytes = f.value;
		} else if (f.number == 5 && f.wire == PROTO_VARINT) {
			ret->label = f.value;
		} else if (f.number == 7 && f.wire == PROTO_VARINT) {
			ret->encoded = f.value != 0;
		}
		ret->floats |= f.number == 6 && f.wire != PROTO_VARINT;
		at += f.wire == PROTO_VARINT ? 0 : f.value;
	}
	ret->whole = ret->floats || (ret->bytes && (ret->encoded || ret->label != NONE));
	return 0;
}

/* Adds the picture of a Datum as a sample, or notes why it is unusable. Raw pixels are refused. */
static int add_datum_sample(struct lmdb_walk *w, const struct value *v, struct err *err)
{
	char name[WEBDATASET_NAME_MAX];
	const char *wrong;
	struct datum d;
	int rc = read_datum(w, v, &d, err);

	if (rc)
		return rc;
	if (d.whole && !d.encoded)
		return refuse_lmdb(
			w,
			"its pixels are raw (Datum without encoded): create it with convert_imageset -encoded "
			"-encode_type jpg",
			err);
	wrong = !d.whole ? "is not a Datum"
		: d.bytes > UINT32_MAX ? "its picture is larger than 4 GiB" : label_of_number((int64_t)d.label).wrong;
	if (wrong) {
		samples_lose(w->to, "%.150s: %.200s: %s", w->file->name, v->key, wrong);
		return 0;
	}
	rc = w->file->read(w->file->user, v->offset + d.picture, w->peek, d.bytes < 4 ? (size_t)d.bytes : 4, err);
	snprintf(name, sizeof(name), "%.400s.%s", v->key, !memcmp(w->peek, "\x89PNG", 4) ? "png" : "jpg");
	if (!rc)
		samples_add(w->to,
			    &(struct sample){ .offset = v->offset + d.picture,
					      .bytes = (uint32_t)d.bytes,
					      .object = w->object,
					      .label = (int32_t)d.label },
			    name);
	return rc;
}

static int read_lmdb_label(void *user, uint64_t offset, size_t n, const char **ret, struct err *err)
{
	struct lmdb_walk *w = user;

	*ret = w->label;
	return w->file->read(w->file->user, offset, w->label, n, err);
}

/* Detects Python's pickle format: it begins with a protocol version and ends with a stop opcode. */
static int is_pickled(struct lmdb_walk *w, const struct value *v, bool *ret, struct err *err)
{
	unsigned char last;
	size_t n;
	int rc = read_value_window(w, v, 0, &n, err);

	*ret = false;
	if (rc || n < 3 || w->peek[0] != 0x80 || w->peek[1] < 2 || w->peek[1] > 5)
		return rc;
	rc = w->file->read(w->file->user, v->offset + v->bytes - 1, &last, 1, err);
	*ret = last == '.';
	return rc;
}

/* Decides by the first value that parses as a known kind. Keys are not enough: Caffe's keys are file names too. */
static int detect_value_kind(struct lmdb_walk *w, const struct value *v, struct err *err)
{
	char field[WEBDATASET_FIELD_MAX];
	bool pickled;
	size_t key;
	struct datum d;
	int rc = is_pickled(w, v, &pickled, err);

	if (!rc && pickled)
		return refuse_lmdb(w,
				   "values are pickled, and loading them may run code: write their content as entries: "
				   "for i, v in enumerate(old): x, y = pickle.loads(v); new.put(b'%09d.jpg' % i, x); "
				   "new.put(b'%09d.cls' % i, b'%d' % y)",
				   err);
	if (!rc)
		rc = read_datum(w, v, &d, err);
	if (rc)
		return rc;
	if (d.whole)
		w->kind = DATUMS;
	else if (webdataset_split(v->key, &key, field))
		w->kind = ENTRIES;
	return 0;
}

static int add_lmdb_value(struct lmdb_walk *w, const struct value *v, struct err *err)
{
	int rc = w->kind == UNKNOWN ? detect_value_kind(w, v, err) : 0;

	if (rc)
		return rc;
	if (w->kind == DATUMS)
		return add_datum_sample(w, v, err);
	return webdataset_groups_entry(w->groups, &(struct webdataset_entry){ v->key, v->offset, v->bytes }, err);
}

/* ---- pages ---- */

static void note_lost_page(struct lmdb_walk *w, uint64_t number, const char *what)
{
	samples_lose(w->to, "%.150s: page %llu %s: its samples are skipped", w->file->name, (unsigned long long)number,
		     what);
}

/* A node of a page in memory. */
struct lmdb_node {
	uint64_t number;
	const unsigned char *page, *node;
	uint32_t room; /* bytes of the page after the node's header */
};

/* Checks a leaf node and adds its value. A damaged node loses the page. */
static int read_leaf_node(struct lmdb_walk *w, const struct lmdb_node *p, struct err *err)
{
	const unsigned char *node = p->node;
	uint32_t key = little_get_u16(node + 6), flags = little_get_u16(node + 4);
	struct value v = { .bytes = little_get_u32(node) };
	const unsigned char *data = node + NODE + key;

	if (key > KEY_MAX || key > p->room || (flags & BIG ? 8 : v.bytes) > p->room - key) {
		note_lost_page(w, p->number, "is damaged");
		return 0;
	}
	if (flags & (SUB | MANY)) { /* a database inside the database */
		samples_lose(w->to, "%.150s: its named databases are skipped", w->file->name);
		return 0;
	}
	for (uint32_t i = 0; i < key; i++)
		v.key[i] = node[NODE + i] > ' ' && node[NODE + i] < 127 ? (char)node[NODE + i] : '?';
	v.offset = p->number * w->page_bytes + (uint64_t)(data - p->page);
	if (flags & BIG) {
		uint64_t first = little_get_u64(data);

		if (first >= w->pages || v.bytes > w->file->bytes - HEAD - first * w->page_bytes) {
			samples_lose(w->to, "%.150s: %.200s: its value exceeds the file", w->file->name, v.key);
			return 0;
		}
		v.offset = first * w->page_bytes + HEAD;
	}
	return add_lmdb_value(w, &v, err);
}

/* Page number of a branch node's child. */
static uint64_t branch_child_page(const unsigned char *node)
{
	return little_get_u32(node) | (uint64_t)little_get_u16(node + 4) << 32;
}

static int walk_lmdb_page(struct lmdb_walk *w, uint64_t number, int depth, struct err *err);

/* Visits the nodes of the page in w->page[depth]: leaf nodes hold values, branch nodes lead to pages. */
static int walk_lmdb_nodes(struct lmdb_walk *w, uint64_t number, int depth, struct err *err)
{
	const unsigned char *page = w->page[depth];
	uint32_t flags = little_get_u16(page + 10), lower = little_get_u16(page + 12), n;
	int rc = 0;

	if (!(flags & (BRANCH | LEAF)) || flags & LEAF2 || lower < HEAD || lower > w->page_bytes) {
		note_lost_page(w, number, "is not a tree page");
		return 0;
	}
	n = (lower - HEAD) / 2;
	for (uint32_t i = 0; !rc && i < n; i++) {
		uint32_t offset = little_get_u16(page + HEAD + 2 * i);
		struct lmdb_node p = { number, page, page + offset, w->page_bytes - offset - NODE };

		if (offset < HEAD || offset + NODE > w->page_bytes)
			note_lost_page(w, number, "is damaged");
		else
			rc = flags & LEAF ? read_leaf_node(w, &p, err)
					  : walk_lmdb_page(w, branch_child_page(p.node), depth + 1, err);
	}
	return rc;
}

static int walk_lmdb_page(struct lmdb_walk *w, uint64_t number, int depth, struct err *err)
{
	int rc;

	if (depth == DEPTH_MAX || !w->left || number >= w->pages) {
		note_lost_page(w, number, number >= w->pages ? "is after the end of the file" : "is linked twice");
		return 0;
	}
	w->left--;
	if (!w->page[depth])
		w->page[depth] = mem_alloc(w->page_bytes);
	rc = w->file->read(w->file->user, number * w->page_bytes, w->page[depth], w->page_bytes, err);
	return rc ? rc : walk_lmdb_nodes(w, number, depth, err);
}

int lmdb_scan(struct samples *to, const struct byte_source *file, uint32_t object, const struct webdataset_fields *f,
	      struct err *err)
{
	struct lmdb_walk *w = mem_zalloc(sizeof(*w));
	uint64_t root = NONE;
	int rc;

	w->to = to;
	w->file = file;
	w->object = object;
	w->groups = webdataset_groups_new(&(struct webdataset_into){ to, file->name, f, object, read_lmdb_label, w });
	rc = find_lmdb_root(w, &root, err);
	if (!rc && root != NONE)
		rc = walk_lmdb_page(w, root, 0, err);
	if (!rc)
		webdataset_groups_end(w->groups);
	webdataset_groups_free(w->groups);
	for (int i = 0; i < DEPTH_MAX; i++)
		free(w->page[i]);
	free(w);
	return rc;
}
