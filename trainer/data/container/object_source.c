/* object_source.c: reads of a byte source become reads of an object. */
#include "trainer/data/container/object_source.h"

static int read_source_object(void *user, uint64_t at, void *to, size_t n, struct err *err)
{
	const struct object_source *s = user;

	return objects_read(s->store, &(struct objects_range){ .object = s->object, .at = at, .n = n }, to, err);
}

struct byte_source object_source_of(struct object_source *s)
{
	return (struct byte_source){ .bytes = objects_bytes(s->store, s->object),
				     .read = read_source_object,
				     .user = s,
				     .name = objects_name(s->store, s->object) };
}
