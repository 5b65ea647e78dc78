/* SPDX-License-Identifier: Apache-2.0 */
/* shards.c: the format "shards": WebDataset tars, TFRecord, Parquet, Arrow and LMDB files, and single pictures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/mem/mem.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/shards_inside.h"

static const struct dataset_ops raw_ops;

static void shards_close(struct dataset *base)
{
	struct shards *d = (struct shards *)base;

	for (int s = 0; s < SPLIT_COUNT; s++)
		free(d->row[s]);
	for (int s = 0; s < SPLIT_COUNT; s++)
		free(d->piece[s]);
	for (int i = 0; i < d->n_classes; i++)
		free(d->classes[i]);
	free(d->classes);
	free(d->facts.names);
	samples_done(&d->samples);
	page_cache_free(d->pages);
	objects_close(d->store);
	image_set_done(&d->set);
	free(d);
}

static bool shards_probe(const char *path)
{
	return shard_list_probe(path);
}

/* Compressed pages hold many samples, so reading in storage order is best. */
static bool has_packed_samples(const struct shards *d)
{
	return d->samples.n && d->samples.at[0].packed;
}

/* Opens the page cache with memory for all pages, estimated from the samples' sizes, or with the limit. Then the set's
 * window must fit it. */
static void open_page_cache(struct shards *d)
{
	const struct sample *at = d->samples.at;
	struct page_totals t = { 0 };
	uint64_t bytes = 0;

	for (int64_t i = 0; i < d->samples.n; i++) {
		const uint64_t end = (uint64_t)samples_inside(at[i].packed) + at[i].bytes;

		if (!at[i].packed)
			continue;
		bytes += at[i].bytes + at[i].bytes / 8 + 64;
		t.largest = end > t.largest ? end : t.largest;
		t.pages += !i || at[i].object != at[i - 1].object || at[i].offset != at[i - 1].offset;
		t.samples++;
	}
	if (bytes > PAGE_CACHE_BYTES)
		d->set.base.page_window = page_cache_window(&t, PAGE_CACHE_BYTES);
	bytes = bytes < PAGE_CACHE_BYTES ? bytes : PAGE_CACHE_BYTES;
	d->set.base.buffer_bytes = objects_buffer_bytes(d->store) + bytes;
	d->pages = page_cache_new(d->store, bytes);
}

/* Opens a set of shards. Implements dataset_ops.open. */
static int shards_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct shards *d = mem_zalloc(sizeof(*d));
	int rc;

	d->set.base.ops = &dataset_shards;
	image_set_init(&d->set, o->path);
	d->store = objects_open(&(struct objects_opts){ .timeout_s = o->data_timeout_s,
							.requests = o->read_ahead,
							.parts = o->parts,
							.cache = o->cache,
							.cache_bytes = o->cache_bytes,
							.peers = o->peers,
							.memory_bytes = o->memory_bytes });
	rc = shards_find(d, o, err);
	if (!rc)
		open_page_cache(d);
	d->set.base.far = objects_far(d->store) || has_packed_samples(d);
	d->set.base.remote = objects_remote(d->store);
	if (!rc)
		rc = shards_describe(d, o, &raw_ops, err);
	if (rc) {
		shards_close(&d->set.base);
		return rc;
	}
	*ret = &d->set.base;
	return 0;
}

static int shards_file(const struct dataset *base, const struct dataset_read *r, struct dataset_file *ret,
		       struct err *err)
{
	const struct shards *d = (const struct shards *)base;
	const struct sample *one = shards_sample(d, r->split, r->index);
	const char *dot = strrchr(samples_name(&d->samples, d->row[r->split][r->index]), '.');
	char *room;
	int rc;

	buf_reset(&ret->bytes);
	room = buf_reserve(&ret->bytes, one->bytes);
	if (!room)
		return err_set(err, ERR_USAGE, "a sample of %u bytes is too large", one->bytes);
	rc = shards_read_bytes(d, r, room, err);
	ret->bytes.len = rc ? 0 : one->bytes;
	ret->ending = !strcasecmp(dot, ".npy") ? "npy" : picture_ending(ret->bytes.data, ret->bytes.len);
	ret->label = one->label;
	return rc;
}

static void shards_where(const struct dataset *base, enum split split, int64_t index, char *ret, size_t bytes)
{
	const struct shards *d = (const struct shards *)base;

	snprintf(ret, bytes, "%s: %s", objects_name(d->store, (int)shards_sample(d, split, index)->object),
		 samples_name(&d->samples, d->row[split][index]));
}

static bool shards_notice(struct dataset *base, char *ret, size_t bytes)
{
	return image_set_notice(base, ret, bytes) || objects_notice(((struct shards *)base)->store, ret, bytes);
}

static void shards_traffic(const struct dataset *base, struct dataset_traffic *ret)
{
	struct objects_traffic t = objects_traffic(((const struct shards *)base)->store);

	*ret = (struct dataset_traffic){ .remote_bytes = t.remote_bytes,
					 .cache_bytes = t.cache_bytes,
					 .local_bytes = t.local_bytes,
					 .requests = t.requests,
					 .retries = t.retries,
					 .refetched_bytes = t.refetched_bytes,
					 .peer_bytes = t.peer_bytes,
					 .peer_failures = t.peer_failures };
}

static void shards_facts(const struct dataset *base, enum split split, struct dataset_facts *ret)
{
	const struct shards *d = (const struct shards *)base;

	ret->format = d->classes ? dataset_folder.name : shard_list_format(objects_name(d->store, 0));
	ret->shards = d->classes ? 0 : base->n_pieces[split];
	for (int64_t i = 0; i < base->n_samples[split]; i++)
		ret->bytes += shards_sample(d, split, i)->bytes;
	ret->cached_bytes = d->cached_bytes;
}

/* Notes that a window is smaller than the user's. */
static void note_page_window(struct shards *d, const struct dataset_windows *w)
{
	const struct dataset_page_window *most = &d->set.base.page_window;
	char text[256];

	if (!most->lanes || w->window <= most->samples)
		return;
	snprintf(text, sizeof(text),
		 "the compressed pages of %lld samples fit into the %u MiB for them: windows have that many, not %lld "
		 "(--shuffle-window): write smaller pages (row_group_size of pyarrow) to shuffle more",
		 (long long)most->samples, (unsigned)(PAGE_CACHE_BYTES >> 20), (long long)w->window);
	image_set_note(&d->set, text);
}

/* Sets the store's memory limit for the windows, and notes if it does not suffice. Implements dataset_ops.hold. */
static void shards_hold(struct dataset *base, const struct dataset_windows *w)
{
	struct shards *d = (struct shards *)base;
	const int64_t n = base->n_samples[SPLIT_TRAIN], samples = w->samples < n ? w->samples : n;
	const uint64_t before = objects_buffer_bytes(d->store);
	struct objects_windows windows = { .places = w->places, .memory_bytes = w->memory_bytes };
	struct dataset_facts facts = { 0 };
	char text[256];

	if (has_packed_samples(d)) {
		note_page_window(d, w);
		return;
	}
	if (n < 1 || !base->remote)
		return;
	shards_facts(base, SPLIT_TRAIN, &facts);
	windows.bytes = facts.bytes / (uint64_t)n * (uint64_t)samples;
	if (!objects_hold_windows(d->store, &windows)) {
		snprintf(text, sizeof(text),
			 "a window of %lld samples needs %llu MiB, but the process has only "
			 "%llu MiB for it: parts of the set will be fetched several times: lower --shuffle-window or "
			 "use "
			 "--cache DIR",
			 (long long)samples, (unsigned long long)(windows.bytes >> 20),
			 (unsigned long long)(w->memory_bytes >> 20));
		image_set_note(&d->set, text);
	}
	base->buffer_bytes += objects_buffer_bytes(d->store) - before;
}

/* Implements dataset_ops.object: each piece is an object. */
static bool shards_object(const struct dataset *base, enum split split, int64_t number, struct dataset_object *ret)
{
	const struct shards *d = (const struct shards *)base;
	int object;

	if (number >= base->n_pieces[split])
		return false;
	object = (int)shards_sample(d, split, d->piece[split][number])->object;
	*ret = (struct dataset_object){ objects_address(d->store, object), objects_generation(d->store, object),
					objects_bytes(d->store, object) };
	return true;
}

static void shards_sum(const struct dataset *base, enum split split, struct sha256 *to)
{
	const struct shards *d = (const struct shards *)base;

	for (int64_t i = 0; i < base->n_samples[split]; i++) {
		const struct sample *one = shards_sample(d, split, i);
		const char *name = samples_name(&d->samples, d->row[split][i]);
		uint32_t facts[2] = { one->bytes, (uint32_t)one->label };

		sha256_add(to, name, strlen(name) + 1);
		sha256_add(to, facts, sizeof(facts));
	}
}

static int32_t shards_label(const struct dataset *base, enum split split, int64_t index)
{
	return shards_sample((const struct shards *)base, split, index)->label;
}

const struct dataset_ops dataset_shards = {
	.name = "shards",
	.expects = "*.tar, *.tfrecord, *.parquet, *.arrow, data.mdb (shards)",
	.probe = shards_probe,
	.open = shards_open,
	.read = shards_read,
	.close = shards_close,
	.hand_new = shards_hand_new,
	.hand_free = shards_hand_free,
	.notice = shards_notice,
	.broken = image_set_broken,
	.file = shards_file,
	.label = shards_label,
	.ahead = shards_ahead,
	.traffic = shards_traffic,
	.facts = shards_facts,
	.hold = shards_hold,
	.where = shards_where,
	.sum = shards_sum,
	.object = shards_object,
};

/* The operations for raw images, which are not decoded. */
static const struct dataset_ops raw_ops = {
	.name = "shards",
	.read = shards_read,
	.close = shards_close,
	.notice = shards_notice,
	.broken = image_set_broken,
	.file = shards_file,
	.label = shards_label,
	.ahead = shards_ahead,
	.traffic = shards_traffic,
	.facts = shards_facts,
	.hold = shards_hold,
	.where = shards_where,
	.sum = shards_sum,
	.object = shards_object,
};
