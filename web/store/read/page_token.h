/* SPDX-License-Identifier: Apache-2.0 */
/* page_token.h: page tokens of searches: the position of the last run of a page, as text. A token is valid only for the
 * search that made it. Private to web/store. */
#ifndef DPT_STORE_PAGE_TOKEN_H
#define DPT_STORE_PAGE_TOKEN_H

#include "web/store/filter/filter.h"
#include "web/store/read/query.h"

#define PAGE_TOKEN_TEXT_BYTES 200 /* kept bytes of a sort text; texts equal in these bytes sort as equal */
#define PAGE_TOKEN_KEYS_MAX 16

struct page_token_place {
	struct filter_value keys[PAGE_TOKEN_KEYS_MAX]; /* values of the fields in the search's order */
	int64_t start_ms;
	char uuid[33];
};

uint32_t page_token_plan(const struct query_runs_opts *o); /* hash that identifies the search */

/* The search that a token belongs to. */
struct page_token_search {
	uint32_t plan;
	size_t key_count; /* number of fields in its order */
};

/* In the arena. */
const char *page_token_write(const struct page_token_search *s, const struct page_token_place *p, struct arena *a);

/* texts live in the arena. ERR_USAGE: not a token of this search. */
int page_token_read(const char *token, const struct page_token_search *s, struct arena *a, struct page_token_place *ret,
		    struct err *err);

/* Page tokens for short lists that are computed again for each page: a position, and what the list was
 * made for. Knows no list. */
/* made_for identifies the list (a CRC of filter and order). In the arena. */
const char *list_token_write(struct arena *a, uint32_t made_for, size_t place);

/* *ret: the position; 0 for NULL and "". ERR_USAGE: not a token, or of another list. */
int list_token_read(const char *token, uint32_t made_for, size_t *ret, struct err *err);

/* made_for of a search, from its filter (NULL: none) and orders. */
uint32_t list_token_made_for(const char *filter, const char *const *order, size_t order_count);

#endif
