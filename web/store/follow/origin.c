/* SPDX-License-Identifier: Apache-2.0 */
/* origin.c: reads the first records of a file. */
#include "web/store/follow/origin.h"

#include <stdio.h>
#include <stdlib.h>

#include "tracker/base/sha256.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"

/* The parent folder of path, which is the run of a foreign file. */
static void copy_parent_folder(const char *path, char ret[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(ret, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

void origin_run_of_folder(char ret[ORIGIN_ID_BYTES], const char *folder)
{
	char hex[65];

	sha256_hex(folder, strlen(folder), hex);
	snprintf(ret, ORIGIN_ID_BYTES, "%.32s", hex);
}

/* The first two records, or all of the head if they are longer: both stay the same while the file grows. The first one
 * has the time at which its writer began. */
void origin_content(char ret[ORIGIN_ID_BYTES], const void *head, size_t n)
{
	struct record rec;
	size_t at = 0;
	char hex[65];

	n = n < ORIGIN_HEAD_BYTES ? n : ORIGIN_HEAD_BYTES;
	if (record_next(head, n, &at, &rec) != RECORD_OK || record_next(head, n, &at, &rec) != RECORD_OK)
		at = n;
	sha256_hex(head, at, hex);
	snprintf(ret, ORIGIN_ID_BYTES, "%.32s", hex);
}

bool origin_is_rank(const char *path, int *ret_rank, int *ret_segment)
{
	const char *name = strrchr(path, '/'), *folder = name ? memrchr(path, '/', (size_t)(name - path)) : NULL;
	const char *mark = name ? strstr(name, ".dptrack.") : NULL;
	char *end;
	long rank, segment;

	folder = folder ? folder + 1 : path;
	if (!mark || folder == path || strncmp(folder, "rank-", 5) || folder[5] < '0' || folder[5] > '9')
		return false;
	rank = strtol(folder + 5, &end, 10);
	if (*end != '/' || rank > LIMIT_rank)
		return false;
	segment = strtol(mark + strlen(".dptrack."), &end, 10);
	if (*end || segment < 0 || segment > LIMIT_segment)
		return false;
	*ret_rank = (int)rank;
	*ret_segment = (int)segment;
	return true;
}

static void read_origin_header(struct origin *o, const struct record *rec)
{
	struct event_item item;
	struct event ev;

	if (event_open(&ev, rec->payload, rec->payload_bytes))
		return;
	while (event_next(&ev, &item) > 0)
		if (item.kind == EVENT_HEADER) {
			snprintf(o->run, sizeof(o->run), "%.32s", item.header->run_id.at);
			snprintf(o->writer, sizeof(o->writer), "%.32s", item.header->writer_id.at);
			o->known = true;
		}
}

static void read_export_tag(struct origin *o, const struct record *rec)
{
	static const char start[] = "{\"run\":\"";
	struct event_item item;
	struct event ev;

	if (event_open(&ev, rec->payload, rec->payload_bytes))
		return;
	while (event_next(&ev, &item) > 0)
		if (item.kind == EVENT_TAG && event_text_equal(item.key, EVENT_EXPORT_TAG) &&
		    item.text.len > sizeof(start) + 32 && !memcmp(item.text.at, start, sizeof(start) - 1))
			snprintf(o->exported, sizeof(o->exported), "%.32s", item.text.at + sizeof(start) - 1);
}

/* Returns true if a foreign file has more than its version record. */
static bool says_something(const void *head, size_t n, size_t at)
{
	struct record rec;

	return n >= ORIGIN_HEAD_BYTES || record_next(head, n, &at, &rec) != RECORD_MORE;
}

int origin_find(struct origin *ret, const char *path, const void *head, size_t n)
{
	bool events = strstr(path, "tfevents") != NULL;
	int rank, segment;
	struct record rec;
	size_t at = 0;
	enum record_state state = record_next(head, n, &at, &rec);

	*ret = (struct origin){ 0 };
	if (state == RECORD_MORE && !(events && n >= ORIGIN_HEAD_BYTES))
		return 0;
	if (state == RECORD_OK)
		read_origin_header(ret, &rec);
	if (ret->known || !events || (state != RECORD_OK && state != RECORD_MORE))
		return ret->known ? 1 : -1;
	if (!says_something(head, n, at))
		return 0;
	ret->foreign = true;
	ret->annotates = origin_is_rank(path, &rank, &segment);
	origin_content(ret->content, head, n);
	if (record_next(head, n, &at, &rec) == RECORD_OK)
		read_export_tag(ret, &rec);
	return 1;
}

void origin_folder(const struct origin *o, const char *path, char ret[PATH_MAX])
{
	char folder[PATH_MAX];

	copy_parent_folder(path, ret);
	if (!o->annotates)
		return;
	memcpy(folder, ret, sizeof(folder));
	copy_parent_folder(folder, ret);
}

void origin_names(const struct origin *o, const char *path, const char *root, struct ingest_foreign *ret,
		  struct origin_room *room)
{
	const char *slash;

	origin_folder(o, path, room->folder);
	slash = strchr(room->folder, '/');
	ret->annotates = o->annotates;
	ret->experiment = "Default";
	ret->name = !strcmp(room->folder, ".") ? root : room->folder;
	if (!slash)
		return;
	snprintf(room->first, PATH_MAX, "%.*s", (int)(slash - room->folder), room->folder);
	ret->experiment = room->first;
	ret->name = slash + 1;
}
