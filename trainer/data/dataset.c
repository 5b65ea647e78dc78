/* dataset.c: dispatches to the format's operations and checks what every read must return. Knows no format by name. */
#include "trainer/data/dataset.h"

#include <string.h>

const char *split_name(enum split s)
{
	return s == SPLIT_TRAIN ? "train" : "val";
}

const char *sample_kind_name(enum sample_kind k)
{
	return k == SAMPLE_IMAGE ? "images" : "tokens";
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
			return err_set(err, ERR_USAGE, "%.200s: token %d in %s sample %lld: expected 0 to %lld",
				       d->path, fits ? r->targets[i] : r->tokens[i], split_name(r->split),
				       (long long)r->index, (long long)d->vocab - 1);
	}
	return 0;
}

int64_t dataset_weight(const struct dataset *d, enum split split, int64_t index)
{
	if (d->ops->weight)
		return d->ops->weight(d, split, index);
	return d->kind == SAMPLE_TOKENS ? d->seq_len : 1;
}

void dataset_where(const struct dataset *d, enum split split, int64_t index, char *ret, size_t bytes)
{
	ret[0] = '\0';
	if (d->ops->where && index >= 0 && index < d->n_samples[split])
		d->ops->where(d, split, index, ret, bytes);
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

struct dataset_traffic dataset_traffic(const struct dataset *d)
{
	struct dataset_traffic t = { 0 };

	if (d->ops->traffic)
		d->ops->traffic(d, &t);
	return t;
}

struct dataset_facts dataset_facts(const struct dataset *d, enum split split)
{
	struct dataset_facts f = { .format = d->ops->name };

	if (d->ops->facts)
		d->ops->facts(d, split, &f);
	return f;
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
