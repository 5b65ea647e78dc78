/* formats.c: the table of formats, and the detection of a folder's format. */
#include "trainer/data/formats/formats.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/buf.h"
#include "trainer/data/formats/token_mix.h"

const struct dataset_ops *const formats_table[FORMATS_COUNT] = {
#define FORMAT(name) [FORMATS_##name] = &dataset_##name,
#include "trainer/data/formats/formats.def"
#undef FORMAT
};

static int fail_not_recognised(const char *path, struct err *err)
{
	struct buf b;
	int rc;

	buf_init(&b, 400);
	for (int i = 0; i < FORMATS_COUNT; i++)
		if (formats_table[i]->expects)
			buf_addf(&b, "%s%s", b.len ? "; or " : "", formats_table[i]->expects);
	rc = err_set(err, ERR_USAGE, "%.200s: no data set recognised: expected %s", path, b.data ? b.data : "");
	buf_done(&b);
	return rc;
}

int formats_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct stat st;
	bool folder = !stat(o->path, &st) && S_ISDIR(st.st_mode);

	if (o->mix)
		return token_mix_open(ret, o, formats_open, err);
	for (int i = 0; i < FORMATS_COUNT; i++)
		if ((folder || i == FORMATS_shards) && formats_table[i]->probe && formats_table[i]->probe(o->path))
			return o->val_path && i != FORMATS_shards ? err_set(err, ERR_USAGE,
									    "--val-path: is for shards only: %.200s "
									    "has its own validation samples; "
									    "use --val-split",
									    o->path)
								  : formats_table[i]->open(ret, o, err);
	if (stat(o->path, &st))
		return err_set(err, ERR_USAGE, "data path %.200s: %s", o->path, strerror(errno));
	if (!folder)
		return err_set(err, ERR_USAGE, "data path %.200s: is neither a folder nor a shard", o->path);
	return fail_not_recognised(o->path, err);
}
