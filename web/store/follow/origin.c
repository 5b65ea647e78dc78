/* origin.c: finds the run by the first record, or by the path. */
#include "web/store/follow/origin.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/sha256.h"
#include "tracker/event/event.h"
#include "tracker/event/record.h"

/* The parent folder of path, which is the run of a foreign file. */
static void copy_parent_folder(const char *path, char ret[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(ret, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static void name_foreign_run(struct origin *o, const char *folder)
{
	char hex[65];

	sha256_hex(folder, strlen(folder), hex);
	memcpy(o->run, hex, 32);
}

static void make_foreign(struct origin *o, const char *path)
{
	char folder[PATH_MAX], hex[65];

	copy_parent_folder(path, folder);
	name_foreign_run(o, folder);
	sha256_hex(path, strlen(path), hex);
	/* The second half of the digest: the path of a file at the root could equal a run's. */
	memcpy(o->writer, hex + 32, 32);
	o->run[32] = o->writer[32] = '\0';
	o->known = o->foreign = true;
}

static void read_origin_header(struct origin *o, const struct record *rec)
{
	struct event_item item;
	struct event ev;

	if (event_open(&ev, rec->payload, rec->payload_bytes))
		return;
	while (event_next(&ev, &item) > 0)
		if (item.kind == EVENT_HEADER) {
			snprintf(o->run, sizeof o->run, "%.32s", item.header->run_id.at);
			snprintf(o->writer, sizeof o->writer, "%.32s", item.header->writer_id.at);
			o->known = true;
		}
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
	make_foreign(ret, path);
	return 1;
}

void origin_lift(struct origin *o, const char *path)
{
	char folder[PATH_MAX], above[PATH_MAX];

	copy_parent_folder(path, folder);
	copy_parent_folder(folder, above);
	name_foreign_run(o, above);
	o->annotates = true;
}

void origin_names(const struct origin *o, const char *path, const char *root, struct ingest_foreign *ret,
		  struct origin_room *room)
{
	const char *slash;

	copy_parent_folder(path, room->folder);
	if (o->annotates) {
		copy_parent_folder(room->folder, room->first);
		memcpy(room->folder, room->first, sizeof room->folder);
	}
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
