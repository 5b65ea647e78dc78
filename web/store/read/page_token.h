/* page_token.h: page tokens of searches: the place of a page's last run in the order, as text that a client brings back. A
 * token is only good with the search that it was made for. Private to web/store. */
#ifndef DPT_STORE_PAGE_TOKEN_H
#define DPT_STORE_PAGE_TOKEN_H

#include "tracker/base/arena.h"
#include "web/store/filter/filter.h"
#include "web/store/read/query.h"

#define PAGE_TOKEN_TEXT_BYTES 200 /* of a text that orders; texts that agree in so many bytes sort as equal */
#define PAGE_TOKEN_KEYS_MAX 16

struct page_token_place {
	struct filter_value keys[PAGE_TOKEN_KEYS_MAX]; /* by which the search orders */
	int64_t start_ms;
	char uuid[33];
};

uint32_t page_token_plan(const struct query_runs_opts *o); /* tells searches apart */

/* In the arena; NULL when out of memory. */
const char *page_token_write(uint32_t plan, const struct page_token_place *p, size_t key_count, struct arena *a);

/* texts live in the arena. ERR_USAGE: not a token of this search. */
int page_token_read(const char *token, uint32_t plan, size_t key_count, struct arena *a, struct page_token_place *ret,
	      struct err *err);

#endif
