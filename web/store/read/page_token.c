/* SPDX-License-Identifier: Apache-2.0 */
/* page_token.c: page tokens. That of a search is the hex form of: plan; for each key its class, number and cut text;
 * start time; run id. */
#include "web/store/read/page_token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/base/crc32c.h"
#include "tracker/base/text.h"

/* --- tokens of lists ------------------------------------------------------------------------------------------ */

#define TOKEN_MAX 40 /* characters */

const char *list_token_write(struct arena *a, uint32_t made_for, size_t place)
{
	return arena_printf(a, "%08" PRIx32 "-%zu", made_for, place);
}

int list_token_read(const char *token, uint32_t made_for, size_t *ret, struct err *err)
{
	uint32_t crc;
	size_t place;
	int end = 0;

	if (!token || !*token) {
		*ret = 0;
		return 0;
	}
	if (strlen(token) > TOKEN_MAX || sscanf(token, "%8" SCNx32 "-%zu%n", &crc, &place, &end) != 2 || token[end])
		return err_set(err, ERR_USAGE, "Invalid page token: '%.60s'", token);
	if (crc != made_for)
		return err_set(err, ERR_USAGE,
			       "Invalid page token: filter and order must be those of the previous page");
	*ret = place;
	return 0;
}

uint32_t list_token_made_for(const char *filter, const char *const *order, size_t order_count)
{
	uint32_t crc = crc32c(0, filter ? filter : "", filter ? strlen(filter) + 1 : 1);
	size_t i;

	for (i = 0; i < order_count; i++)
		crc = crc32c(crc, order[i], strlen(order[i]) + 1);
	return crc;
}

#define TOKEN_BYTES_MAX 20000

static uint32_t hash_page_text(uint32_t h, const char *text)
{
	return crc32c(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

uint32_t page_token_plan(const struct query_runs_opts *o)
{
	uint32_t plan = hash_page_text(hash_page_text(0, o->filter), o->order_by);
	size_t i;

	if (o->mlflow)
		plan = hash_page_text(plan, o->mlflow->filter);
	for (i = 0; o->mlflow && i < o->mlflow->order_count; i++)
		plan = hash_page_text(plan, o->mlflow->order[i]);
	for (i = 0; i < o->experiment_count; i++)
		plan = o->experiment_ids ? crc32c(plan, &o->experiment_ids[i], sizeof(*o->experiment_ids))
					 : hash_page_text(plan, o->experiments[i]);
	return plan;
}

const char *page_token_write(const struct page_token_search *s, const struct page_token_place *p, struct arena *a)
{
	struct buf b;
	char *token;
	size_t i;

	buf_init(&b, SIZE_MAX);
	buf_add(&b, &s->plan, 4);
	for (i = 0; i < s->key_count; i++) {
		const struct filter_value *v = &p->keys[i];
		size_t len = v->text && v->present && !v->is_number ? strnlen(v->text, PAGE_TOKEN_TEXT_BYTES) : 0;

		buf_addc(&b, (char)(!v->present ? 0 : v->is_number ? 1 : 2));
		buf_add(&b, &v->number, 8);
		buf_addc(&b, (char)(unsigned char)len);
		buf_add(&b, v->text ? v->text : "", len);
	}
	buf_add(&b, &p->start_ms, 8);
	buf_add(&b, p->uuid, 32);
	token = arena_alloc(a, 2 * b.len + 1);
	text_hex(token, b.data, b.len);
	buf_done(&b);
	return token;
}

static bool take_token_bytes(const unsigned char **p, size_t *left, void *to, size_t n)
{
	if (*left < n)
		return false;
	memcpy(to, *p, n);
	*p += n;
	*left -= n;
	return true;
}

static bool take_token_key(const unsigned char **p, size_t *left, struct arena *a, struct filter_value *v)
{
	unsigned char class, len;
	char *text;

	if (!take_token_bytes(p, left, &class, 1) || class > 2 || !take_token_bytes(p, left, &v->number, 8) ||
	    !take_token_bytes(p, left, &len, 1) || len > PAGE_TOKEN_TEXT_BYTES)
		return false;
	text = arena_alloc(a, (size_t)len + 1);
	if (!take_token_bytes(p, left, text, len))
		return false;
	v->present = class > 0;
	v->is_number = class == 1;
	v->text = text;
	return true;
}

int page_token_read(const char *token, const struct page_token_search *s, struct arena *a, struct page_token_place *ret,
		    struct err *err)
{
	size_t n = strlen(token), left = n / 2, i;
	unsigned char *bytes = n > TOKEN_BYTES_MAX || n % 2 ? NULL : arena_alloc(a, left + 1);
	const unsigned char *p = bytes;
	struct page_token_place place = { 0 };
	uint32_t made_for;
	bool ok = bytes && text_unhex(bytes, token, left) && take_token_bytes(&p, &left, &made_for, 4) &&
		  made_for == s->plan;

	for (i = 0; ok && i < s->key_count; i++)
		ok = take_token_key(&p, &left, a, &place.keys[i]);
	if (!ok || !take_token_bytes(&p, &left, &place.start_ms, 8) || !take_token_bytes(&p, &left, place.uuid, 32) ||
	    left) {
		err_set(err, ERR_USAGE, "page_token: not a token of this search (filter and order must be the same)");
		return err_field(err, "page_token");
	}
	*ret = place;
	return 0;
}
