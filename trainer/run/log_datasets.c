/* SPDX-License-Identifier: Apache-2.0 */
/* log_datasets.c: the data sets of a run as its inputs (name, digest, profile, objects), and as params how they are
 * read. */
#include "trainer/run/report.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/log.h"

#define PROFILE_BYTES ((size_t)1 << 16)
#define ACCOUNT_BYTES ((size_t)1 << 22)
#define ACCOUNT_NAMES 1000 /* names of classes that are recorded */
#define OBJECTS_MOST 1000  /* objects of a split that are recorded one by one */

/* Writes the scheme of the address: "http", "s3", …; "local". */
static void copy_source_type(const char *address, char ret[32])
{
	const char *scheme = strstr(address, "://");

	snprintf(ret, 32, "%.*s", scheme ? (int)(scheme - address) : 5, scheme ? address : "local");
}

/* Writes the last part of an address: "train-{000..146}.tar", "imagenet". */
static void copy_dataset_name(const char *address, char ret[300])
{
	const char *joint = strstr(address, "::");
	size_t end = joint ? (size_t)(joint - address) : strlen(address), begin;

	while (end > 1 && address[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && address[begin - 1] != '/'; begin--)
		;
	snprintf(ret, 300, "%.*s", (int)(end - begin < 299 ? end - begin : 299), address + begin);
}

/* Appends samples and share of each set of a mix, in the order of its addresses. */
static void add_mix_parts(const struct dataset *d, struct buf *to)
{
	double sum = 0;

	for (int i = 0; i < d->n_parts; i++)
		sum += d->part[i].weight;
	for (int i = 0; i < d->n_parts; i++)
		buf_addf(to, "%s{\"samples\": %lld, \"weight\": %.9g}", i ? ", " : ", \"parts\": [",
			 (long long)d->part[i].n, d->part[i].weight / sum);
	if (d->n_parts)
		buf_addc(to, ']');
}

/* Records one split of the data set as an input of the run, with its digest and a profile. */
static int record_split(struct dptrack_run *run, const struct engine *e, enum split split, struct err *err)
{
	const struct dataset *d = e->workload.data;
	const struct run_config *cfg = e->rank.cfg;
	const struct dataset_facts f = dataset_facts(d, split);
	const char *source = split == SPLIT_VAL && cfg->val_path ? cfg->val_path : d->path;
	char type[32], name[300];
	struct buf profile;

	copy_source_type(source, type);
	copy_dataset_name(source, name);
	buf_init(&profile, PROFILE_BYTES);
	buf_addf(&profile, "{\"format\": \"%s\", \"samples\": %lld, \"shards\": %lld, \"bytes\": %llu", f.format,
		 (long long)d->n_samples[split], (long long)f.shards, (unsigned long long)f.bytes);
	if (split == SPLIT_TRAIN)
		add_mix_parts(d, &profile);
	buf_adds(&profile, "}");
	if (buf_failed(&profile)) {
		buf_done(&profile);
		return err_set(err, ERR_NOMEM, "out of memory: the description of %.200s", source);
	}
	dptrack_input(run, &(struct dptrack_input_opts){ .name = name,
							 .digest = e->workload.digest[split],
							 .context = split == SPLIT_TRAIN ? "training" : "validation",
							 .source_type = type,
							 .source = source,
							 .profile = profile.data });
	buf_done(&profile);
	return 0;
}

/* Records an object of a store as an input: its address with the number of its version, as gsutil writes both. */
static void record_object(struct dptrack_run *run, const struct dataset_object *o, const char *context)
{
	const char *key = strstr(o->address, "://");
	char source[8000], digest[65], type[32], profile[128];

	copy_source_type(o->address, type);
	snprintf(source, sizeof(source), "%.7900s#%s", o->address, o->generation);
	sha256_hex(source, strlen(source), digest);
	snprintf(profile, sizeof(profile), "{\"generation\": \"%s\", \"bytes\": %llu}", o->generation,
		 (unsigned long long)o->bytes);
	dptrack_input(run, &(struct dptrack_input_opts){ .name = key ? key + 3 : o->address,
							 .digest = digest,
							 .context = context,
							 .source_type = type,
							 .source = source,
							 .profile = profile });
}

/* Records the objects of a split whose versions have numbers. */
static void record_split_objects(struct dptrack_run *run, const struct dataset *d, enum split split)
{
	struct dataset_object o;
	int64_t n = 0;

	if (!d->ops->object)
		return;
	for (; d->ops->object(d, split, n, &o) && o.generation[0]; n++)
		if (n < OBJECTS_MOST)
			record_object(run, &o, split == SPLIT_TRAIN ? "training object" : "validation object");
	if (n > OBJECTS_MOST)
		log_warn("%s: the first %d of %lld objects are recorded with their generations", d->path, OBJECTS_MOST,
			 (long long)n);
}

/* Records the account of the data as a text, and as params what was left out. */
static int record_account(struct dptrack_run *run, const struct dataset *d, struct err *err)
{
	const long long files = data_account_left(&d->account, DATA_ACCOUNT_FILES),
			samples = data_account_left(&d->account, DATA_ACCOUNT_SAMPLES);
	struct buf text;
	int rc;

	buf_init(&text, ACCOUNT_BYTES);
	buf_adds(&text, "```json\n");
	rc = dataset_account_json(d, ACCOUNT_NAMES, &text, err);
	buf_adds(&text, "\n```\n");
	if (!rc && !buf_failed(&text))
		dptrack_text(run, 0, "data/account", text.data);
	buf_done(&text);
	if (files)
		dptrack_param_i64(run, "data_files_left_out", files);
	if (samples)
		dptrack_param_i64(run, "data_samples_left_out", samples);
	return rc;
}

static void record_data_params(struct dptrack_run *run, const struct engine *e, const struct dataset_facts *f)
{
	static const char *const orders[] = { [SAMPLER_NATURAL] = "none",
					      [SAMPLER_TABLE] = "table",
					      [SAMPLER_GLOBAL] = "global",
					      [SAMPLER_MIX] = "mix",
					      [SAMPLER_WINDOW] = "window" };
	const struct sampler *s = &e->train_schedule.train;

	dptrack_param(run, "data_format", f->format);
	dptrack_param_i64(run, "data_samples", e->workload.data->n_samples[SPLIT_TRAIN]);
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

int log_datasets_record(struct dptrack_run *run, const struct engine *e, bool has_params, struct err *err)
{
	const struct dataset *d = e->workload.data;
	const struct dataset_facts f = dataset_facts(d, SPLIT_TRAIN);
	char text[32];
	int rc = 0;

	for (int s = 0; !rc && !d->endless && s < SPLIT_COUNT; s++)
		if (d->n_samples[s])
			rc = record_split(run, e, (enum split)s, err);
	for (int s = 0; !rc && !d->endless && s < SPLIT_COUNT; s++)
		record_split_objects(run, d, (enum split)s);
	if (rc)
		return rc;
	if (data_account_used(&d->account) && !has_params)
		rc = record_account(run, d, err);
	if (rc)
		return rc;
	if (e->rank.cfg->cache) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)f.cached_bytes);
		dptrack_segment_param(run, "data_cached", text);
	}
	if (!has_params)
		record_data_params(run, e, &f);
	return 0;
}
