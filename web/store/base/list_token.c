/* list_token.c: a token is a CRC and a position as text. */
#include "web/store/base/list_token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tracker/base/crc32c.h"

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
