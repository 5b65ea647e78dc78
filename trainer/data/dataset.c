/* dataset.c: finds the format of a folder; checks what every format's read must keep. */
#include "trainer/data/dataset.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tracker/base/buf.h"

static const struct dataset_ops *const formats[] = {
#define DATASET(name) &dataset_##name,
#include "trainer/data/formats/datasets.def"
#undef DATASET
};

#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

const char *split_name(enum split s)
{
	return s == SPLIT_TRAIN ? "train" : "val";
}

const char *sample_kind_name(enum sample_kind k)
{
	return k == SAMPLE_IMAGE ? "images" : "tokens";
}

static int not_recognised(const char *path, struct err *err)
{
	struct buf b;
	int rc;

	buf_init(&b, 400);
	for (size_t i = 0; i < N_FORMATS; i++)
		if (formats[i]->expects)
			buf_addf(&b, "%s%s", b.len ? "; or " : "", formats[i]->expects);
	rc = err_set(err, ERR_USAGE, "%.200s: no data set recognised; expected are %s", path, b.data ? b.data : "");
	buf_done(&b);
	return rc;
}

int dataset_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct stat st;

	if (stat(o->path, &st))
		return err_set(err, ERR_USAGE, "data path %.200s: %s", o->path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "data path %.200s: is not a folder", o->path);
	for (size_t i = 0; i < N_FORMATS; i++)
		if (formats[i]->probe && formats[i]->probe(o->path))
			return formats[i]->open(ret, o, err);
	return not_recognised(o->path, err);
}

void dataset_close(struct dataset *d)
{
	if (d)
		d->ops->close(d);
}

static int check_tokens(const struct dataset *d, const struct dataset_read *r, struct err *err)
{
	for (int64_t i = 0; i < d->seq_len; i++) {
		bool fits = r->tokens[i] >= 0 && r->tokens[i] < d->vocab;

		if (!fits || r->targets[i] >= d->vocab)
			return err_set(err, ERR_USAGE,
				       "%.200s: token %d in %s sample %lld: must be below the vocabulary's %lld", d->path,
				       fits ? r->targets[i] : r->tokens[i], split_name(r->split), (long long)r->index, (long long)d->vocab);
	}
	return 0;
}

int64_t dataset_weight(const struct dataset *d, enum split split, int64_t index)
{
	if (d->ops->weight)
		return d->ops->weight(d, split, index);
	return d->kind == SAMPLE_TOKENS ? d->seq_len : 1;
}

int dataset_read(const struct dataset *d, const struct dataset_read *r, struct err *err)
{
	int rc;

	if (r->index < 0 || r->index >= d->n_samples[r->split])
		return err_set(err, ERR_USAGE, "%.200s: no sample %lld in the %s split", d->path, (long long)r->index,
			       split_name(r->split));
	rc = d->ops->read(d, r, err);
	if (d->kind == SAMPLE_TOKENS)
		return rc ? rc : check_tokens(d, r, err);
	if (!rc && (*r->label < 0 || *r->label >= d->classes))
		return err_set(err, ERR_USAGE, "%.200s: label %d of %s sample %lld: must be below %d classes", d->path,
			       *r->label, split_name(r->split), (long long)r->index, d->classes);
	return rc;
}

int64_t dataset_broken(const struct dataset *d)
{
	return d->ops->broken ? d->ops->broken(d) : 0;
}

struct dataset_norm dataset_norm(const struct dataset *d)
{
	struct dataset_norm n;

	memcpy(n.mean, d->mean, sizeof(n.mean));
	memcpy(n.std, d->std, sizeof(n.std));
	return n;
}

bool dataset_notice(struct dataset *d, char *ret, size_t bytes)
{
	return d->ops->notice && d->ops->notice(d, ret, bytes);
}
