/* list_token.h: page tokens for short lists that are computed again for each page: a position, and what the list was
 * made for. Knows no list. */
#ifndef DPT_STORE_LIST_TOKEN_H
#define DPT_STORE_LIST_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include "tracker/base/arena.h"
#include "tracker/base/err.h"

/* made_for identifies the list (a CRC of filter and order). In the arena; NULL: out of memory. */
const char *list_token_write(struct arena *a, uint32_t made_for, size_t place);

/* *ret: the position; 0 for NULL and "". ERR_USAGE: not a token, or of another list. */
int list_token_read(const char *token, uint32_t made_for, size_t *ret, struct err *err);

/* made_for of a search, from its filter (NULL: none) and orders. */
uint32_t list_token_made_for(const char *filter, const char *const *order, size_t order_count);

#endif
