/* SPDX-License-Identifier: Apache-2.0 */
/* asset.c: finds an embedded file by binary search; the table is sorted by path. */
#include "web/assets/asset.h"

#include <string.h>

const struct asset *asset_find(const char *path)
{
	size_t low = 0, high = asset_count, mid;
	int order;

	while (low < high) {
		mid = low + (high - low) / 2;
		order = strcmp(path, asset_table[mid].path);
		if (!order)
			return &asset_table[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}
