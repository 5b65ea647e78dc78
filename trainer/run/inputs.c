/* inputs.c: see inputs.h. */
#include "trainer/run/inputs.h"

#include <stdio.h>
#include <string.h>

/* "http", "s3", … as the address begins; "local". */
static void source_type(const char *address, char ret[32])
{
	const char *scheme = strstr(address, "://");

	snprintf(ret, 32, "%.*s", scheme ? (int)(scheme - address) : 5, scheme ? address : "local");
}

/* The last part of an address that says something: "train-{000..146}.tar", "imagenet". */
static void name_of(const char *address, char ret[300])
{
	const char *joint = strstr(address, "::");
	size_t end = joint ? (size_t)(joint - address) : strlen(address), begin;

	while (end > 1 && address[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && address[begin - 1] != '/'; begin--)
		;
	snprintf(ret, 300, "%.*s", (int)(end - begin < 299 ? end - begin : 299), address + begin);
}

static int record_split(struct dptrack_run *run, const struct engine *e, enum split split, struct err *err)
{
	const struct dataset *d = e->subject.data;
	const struct run_config *cfg = e->rank.cfg;
	const struct dataset_facts f = dataset_facts(d, split);
	const char *source = split == SPLIT_VAL && cfg->val_path ? cfg->val_path : d->path;
	char digest[65], type[32], name[300], profile[300];
	int rc = dataset_digest(d, split, cfg->hash_content, digest, err);

	if (rc)
		return rc;
	source_type(source, type);
	name_of(source, name);
	snprintf(profile, sizeof(profile),
		 "{\"format\": \"%s\", \"samples\": %lld, \"shards\": %lld, \"bytes\": %llu}", f.format,
		 (long long)d->n_samples[split], (long long)f.shards, (unsigned long long)f.bytes);
	dptrack_input(run, &(struct dptrack_input_opts){ .name = name,
							 .digest = digest,
							 .context = split == SPLIT_TRAIN ? "training" : "validation",
							 .source_type = type,
							 .source = source,
							 .profile = profile });
	return 0;
}

static void record_params(struct dptrack_run *run, const struct engine *e, const struct dataset_facts *f)
{
	static const char *const orders[] = { [SAMPLER_NATURAL] = "none",
					      [SAMPLER_TABLE] = "table",
					      [SAMPLER_GLOBAL] = "global",
					      [SAMPLER_WINDOW] = "window" };
	const struct sampler *s = &e->course.train;

	dptrack_param(run, "data_format", f->format);
	dptrack_param_i64(run, "data_samples", e->subject.data->n_samples[SPLIT_TRAIN]);
	if (f->shards)
		dptrack_param_i64(run, "data_shards", f->shards);
	if (f->bytes)
		dptrack_param_i64(run, "data_bytes", (int64_t)f->bytes);
	if (s->endless)
		return;
	dptrack_param(run, "data_shuffle", orders[s->order]);
	if (s->order == SAMPLER_WINDOW)
		dptrack_param_i64(run, "data_window", s->window);
}

int inputs_record(struct dptrack_run *run, const struct engine *e, bool has_params, struct err *err)
{
	const struct dataset *d = e->subject.data;
	const struct dataset_facts f = dataset_facts(d, SPLIT_TRAIN);
	char text[32];
	int rc = 0;

	for (int s = 0; !rc && !d->endless && s < SPLIT_COUNT; s++)
		if (d->n_samples[s])
			rc = record_split(run, e, (enum split)s, err);
	if (rc)
		return rc;
	if (e->rank.cfg->cache) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)f.cached_bytes);
		dptrack_segment_param(run, "data_cached", text);
	}
	if (!has_params)
		record_params(run, e, &f);
	return 0;
}
