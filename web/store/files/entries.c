/* entries.c: a growing list in an arena. */
#include "web/store/files/entries.h"

#include <stdlib.h>
#include <string.h>

int entries_add(struct entries *e, struct artifact_entry entry)
{
	struct artifact_entry *grown;

	if (e->n == e->room) {
		e->room = e->room ? 2 * e->room : 32;
		grown = arena_array(e->arena, e->room, sizeof *grown);
		if (!grown)
			return ERR_NOMEM;
		if (e->n)
			memcpy(grown, e->list, e->n * sizeof *grown);
		e->list = grown;
	}
	e->list[e->n++] = entry;
	return entry.name ? 0 : ERR_NOMEM;
}

static int compare_entry_names(const void *x, const void *y)
{
	return strcmp(((const struct artifact_entry *)x)->name, ((const struct artifact_entry *)y)->name);
}

void entries_sort(struct entries *e)
{
	if (e->n)
		qsort(e->list, e->n, sizeof *e->list, compare_entry_names);
}
