/* shards.c: tar shards of pictures by WebDataset's conventions, or of images that are stored as they are (.npy). Where
 * each sample lies is found out once and kept (keep.h); bytes are read when a sample is asked for. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/base/sha256.h"
#include "trainer/data/container/shard_index.h"
#include "trainer/data/container/shard_list.h"
#include "trainer/data/formats/folder_remote.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/image_set.h"
#include "trainer/data/formats/keep.h"
#include "trainer/data/formats/npy.h"
#include "trainer/data/formats/pages.h"
#include "trainer/data/pictures/pixels.h"
#include "trainer/graph/rng.h"

#define KEY_BYTES_MAX ((size_t)1 << 28)
#define STAMP_BYTES_MAX ((size_t)1 << 16)
#define NPY_BYTES_MAX ((size_t)1 << 28)

struct shards {
	struct image_set set;
	struct objects *store;
	struct pages *pages;
	struct samples samples;
	char **classes; /* of single pictures, which lie in folders by class; NULL: of shards */
	int n_classes;
	struct shard_facts facts;
	uint64_t cached_bytes;	    /* that the cache held before anything was read */
	uint32_t *row[SPLIT_COUNT]; /* [sample of the split]: its row in samples */
	int64_t *piece[SPLIT_COUNT];
	bool raw;		    /* images as they are, all of one size */
	char head[NPY_HEAD_MAX];    /* … and with one header */
	size_t head_bytes;
};

/* What a thread reads into. */
struct hand {
	struct picture *picture;
	uint8_t *bytes;
	size_t cap;
	struct buf stamp; /* of the object that was read last, where evaluation pictures are kept */
};

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
	samples_done(&d->samples);
	pages_free(d->pages);
	objects_close(d->store);
	image_set_done(&d->set);
	free(d);
}

static bool shards_probe(const char *path)
{
	return shard_list_probe(path);
}

/* Single pictures behind an address: those of training first. */
static int add_pictures(struct shards *d, const struct dataset_opts *o, int *ret_train, struct err *err)
{
	struct folder_remote found = { .n_train = 0 };
	int rc = folder_remote_find(&found, d->store,
				    &(struct folder_remote_opts){ .address = o->path,
								  .store = { .timeout_s = o->data_timeout_s },
								  .val_share = o->val_share },
				    err);

	if (rc) {
		folder_remote_done(&found);
		return rc;
	}
	d->samples = found.samples;
	d->classes = found.classes;
	d->n_classes = d->facts.classes = found.n_classes;
	d->set.base.class_names = (const char *const *)d->classes;
	d->set.base.n_class_names = d->n_classes;
	*ret_train = found.n_train;
	return 0;
}

/* Opens the shards of both splits; *ret_train of them are those of training. Without shards of its own for validation
 * all of them are. */
static int add_shards(struct shards *d, const struct dataset_opts *o, int *ret_train, struct err *err)
{
	bool one_folder = objects_is_folder(o->path) && !strstr(o->path, "::") && !strchr(o->path, '{');
	struct shard_list list = { .timeout_s = o->data_timeout_s, .may_be_none = one_folder && !o->val_path };
	int rc = shard_list_add(&list, o->path, SHARDS_TRAIN, err);

	*ret_train = list.n;
	d->facts = list.facts;
	if (!rc)
		rc = o->val_path ? shard_list_add(&list, o->val_path, SHARDS_ALL, err)
				 : shard_list_add(&list, o->path, SHARDS_VAL, err);
	for (int i = 0; rc >= 0 && i < list.n; i++)
		rc = objects_add(d->store, list.address[i], err);
	if (rc >= 0 && !list.n)
		rc = add_pictures(d, o, ret_train, err);
	shard_list_done(&list);
	return rc < 0 ? rc : objects_measure(d->store, err);
}

/* What the table depends on, as 16 hex digits. */
static int table_name(const struct shards *d, const struct webdataset_fields *f, char ret[32], struct err *err)
{
	char hex[65];
	struct buf b;
	int rc = 0;

	buf_init(&b, KEY_BYTES_MAX);
	buf_addf(&b, "1 %s %s\n", f->image, f->label);
	for (int i = 0; i < objects_count(d->store); i++)
		objects_stamp(d->store, i, &b);
	if (buf_failed(&b))
		rc = err_set(err, ERR_NOMEM, "out of memory: the names of %d shards", objects_count(d->store));
	else
		sha256_hex(b.data, b.len, hex);
	if (!rc)
		snprintf(ret, 32, "%.16s.samples", hex);
	buf_done(&b);
	return rc;
}

/* Others may write where it was kept: rows that leave their shard, or names without an end, are not taken. */
static bool fits(const struct shards *d, const struct samples *s)
{
	size_t names = (size_t)(s->notes - s->names);
	uint64_t n = (uint64_t)objects_count(d->store);

	if (s->n && (!names || s->names[names - 1]))
		return false;
	for (int64_t i = 0; i < s->n; i++) {
		const struct sample *one = &s->at[i];

		if (one->object >= n || one->key >= names || one->label < 0 ||
		    one->offset > objects_bytes(d->store, (int)one->object) ||
		    (!one->packed && one->bytes > objects_bytes(d->store, (int)one->object) - one->offset))
			return false;
	}
	return true;
}

static bool take_kept(struct shards *d, const char *path)
{
	if (!samples_take(&d->samples, path))
		return false;
	if (fits(d, &d->samples))
		return true;
	samples_done(&d->samples);
	return false;
}

/* One rank looks, the others of the machine wait for what it keeps. */
static int find_samples(struct shards *d, const struct dataset_opts *o, struct err *err)
{
	struct webdataset_fields f = { o->image_field ? o->image_field : "jpg;jpeg;png;npy",
				       o->label_field ? o->label_field : "cls" };
	char folder[KEEP_PATH_BYTES], path[KEEP_PATH_BYTES], name[32];
	int rc = table_name(d, &f, name, err), lock = -1;
	bool kept;

	if (rc)
		return rc;
	kept = keep_beside(o->path, folder) && keep_join(path, folder, name);
	if (!kept)
		kept = keep_in_cache(o->path, folder) && keep_join(path, folder, name);
	if (kept && take_kept(d, path))
		return 0;
	if (kept)
		lock = keep_lock(folder);
	if (!kept || !take_kept(d, path)) {
		rc = shard_index(&d->samples, d->store, &f, err);
		if (!rc && kept)
			samples_keep(&d->samples, path);
	}
	if (lock >= 0)
		close(lock);
	return rc;
}

/* The same samples go to validation on every machine, whatever else is added: by the hash of their key. */
static enum split split_of(const struct shards *d, int64_t row, int train, double val_share)
{
	const char *name = samples_name(&d->samples, row);
	char key[WEBDATASET_NAME_MAX + 1], field[WEBDATASET_FIELD_MAX];
	size_t n;

	if ((int)d->samples.at[row].object >= train)
		return SPLIT_VAL;
	if (train < objects_count(d->store) || val_share <= 0 || !webdataset_split(name, &n, field) || n >= sizeof(key))
		return SPLIT_TRAIN;
	memcpy(key, name, n);
	key[n] = '\0';
	return rng_uniform((struct rng_key){ rng_stream(key), rng_stream("validation") }, 0) < val_share ? SPLIT_VAL
													: SPLIT_TRAIN;
}

static int deal(struct shards *d, int train, double val_share, struct err *err)
{
	int64_t n = d->samples.n;

	if (n > DATASET_SAMPLES_MAX)
		return err_set(err, ERR_USAGE, "%.200s: %lld samples: at most %lld are possible", d->set.base.path,
			       (long long)n, (long long)DATASET_SAMPLES_MAX);
	for (int s = 0; s < SPLIT_COUNT; s++) {
		d->row[s] = malloc(((size_t)n + 1) * sizeof(*d->row[s]));
		if (!d->row[s])
			return err_set(err, ERR_NOMEM, "out of memory: %lld samples", (long long)n);
	}
	for (int64_t i = 0; i < n; i++) {
		enum split s = split_of(d, i, train, val_share);

		d->row[s][d->set.base.n_samples[s]++] = (uint32_t)i;
	}
	return 0;
}

/* Rows of one shard lie side by side: its samples are a piece. */
static int cut_pieces(struct shards *d, enum split s, struct err *err)
{
	struct dataset *b = &d->set.base;
	int64_t n = b->n_samples[s], count = 0;

	d->piece[s] = malloc(((size_t)objects_count(d->store) + 2) * sizeof(*d->piece[s]));
	if (!d->piece[s])
		return err_set(err, ERR_NOMEM, "out of memory: %d shards", objects_count(d->store));
	for (int64_t i = 0; i < n; i++)
		if (!i || d->samples.at[d->row[s][i]].object != d->samples.at[d->row[s][i - 1]].object)
			d->piece[s][count++] = i;
	d->piece[s][count] = n;
	b->piece[s] = d->piece[s];
	b->n_pieces[s] = count;
	return 0;
}

static const struct sample *sample_of(const struct shards *d, enum split s, int64_t i)
{
	return &d->samples.at[d->row[s][i]];
}

/* Keys, sizes and labels, not pixels nor where they lie: the same set elsewhere is the same. */
static void hash(struct shards *d)
{
	uint32_t c[SPLIT_COUNT] = { 0 };

	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->set.base.n_samples[s]; i++) {
			const struct sample *one = sample_of(d, (enum split)s, i);
			const char *name = samples_name(&d->samples, d->row[s][i]);
			uint32_t facts[2] = { one->bytes, (uint32_t)one->label };

			c[s] = crc32c(crc32c(c[s], name, strlen(name)), facts, sizeof(facts));
		}
	snprintf(d->set.base.hash, sizeof(d->set.base.hash), "shards-%08x-%08x", c[SPLIT_TRAIN], c[SPLIT_VAL]);
}

static int classes_of(const struct shards *d)
{
	int32_t most = -1;

	for (int64_t i = 0; i < d->samples.n; i++)
		most = d->samples.at[i].label > most ? d->samples.at[i].label : most;
	return most + 1 > d->facts.classes ? most + 1 : d->facts.classes;
}

/* "train-000003.tar: 000012345.jpg" */
static void say_sample(const struct shards *d, enum split s, int64_t i, char ret[320])
{
	if (d->classes)
		snprintf(ret, 320, "%.300s", objects_address(d->store, (int)sample_of(d, s, i)->object));
	else
		snprintf(ret, 320, "%.150s: %.150s", objects_name(d->store, (int)sample_of(d, s, i)->object),
			 samples_name(&d->samples, d->row[s][i]));
}

static struct objects_range range_of(const struct shards *d, const struct dataset_read *r)
{
	const struct sample *one = sample_of(d, r->split, r->index);
	uint64_t left = objects_bytes(d->store, (int)one->object) - one->offset;

	return (struct objects_range){ .object = (int)one->object,
				       .at = one->offset,
				       .n = one->bytes < left ? one->bytes : (size_t)left,
				       .alone = r->alone && !d->raw && !one->packed,
				       .stop = r->stop };
}

/* The picture of a sample by the bytes that it is made of; false: it is not kept. */
static bool name_kept(const struct shards *d, const struct dataset_read *r, struct buf *stamp, struct derived_name *ret)
{
	const struct sample *one = sample_of(d, r->split, r->index);

	if (!image_set_keeps(&d->set, r) || !objects_versioned(d->store, (int)one->object))
		return false;
	buf_reset(stamp);
	objects_stamp(d->store, (int)one->object, stamp);
	buf_addc(stamp, '\0');
	*ret = (struct derived_name){ .of = stamp->data,
				      .at = one->offset,
				      .bytes = (uint64_t)one->packed << 32 | one->bytes };
	return !buf_failed(stamp);
}

/* What is kept is not fetched again. */
static bool is_kept(const struct shards *d, const struct dataset_read *r)
{
	struct derived_name kept;
	struct buf stamp;
	bool is;

	buf_init(&stamp, STAMP_BYTES_MAX);
	is = name_kept(d, r, &stamp, &kept) && image_set_holds(&d->set, &kept);
	buf_done(&stamp);
	return is;
}

static bool shards_ahead(const struct dataset *base, const struct dataset_read *r)
{
	const struct shards *d = (const struct shards *)base;
	struct objects_range range = range_of(d, r);

	return !range.n || is_kept(d, r) || objects_want(d->store, &range);
}

/* A sample's bytes as they are stored, unpacked. */
static int read_bytes(const struct shards *d, const struct dataset_read *r, void *to, struct err *err)
{
	const struct sample *one = sample_of(d, r->split, r->index);
	const struct objects_range range = range_of(d, r);

	return one->packed ? pages_read(d->pages, one, r->stop, to, err) : objects_read(d->store, &range, to, err);
}

/* The sample's bytes, in the hand. */
static int fetch(const struct shards *d, const struct dataset_read *r, struct err *err)
{
	const struct sample *one = sample_of(d, r->split, r->index);
	struct hand *h = r->hand;
	char name[320];

	say_sample(d, r->split, r->index, name);
	if (!one->bytes || one->bytes > (d->raw ? NPY_BYTES_MAX : PICTURE_FILE_MAX))
		return err_set(err, ERR_CORRUPT, "%s: %s", name,
			       one->bytes ? "is too large for a picture" : "is empty");
	if (one->bytes > h->cap) {
		size_t cap = one->bytes + (size_t)one->bytes / 4;
		uint8_t *more = realloc(h->bytes, cap);

		if (!more)
			return err_set(err, ERR_NOMEM, "out of memory: %s", name);
		h->bytes = more;
		h->cap = cap;
	}
	return read_bytes(d, r, h->bytes, err);
}

static int read_picture(const struct shards *d, const struct dataset_read *r, struct err *err)
{
	struct hand *h = r->hand;
	struct picture_size size;
	struct derived_name kept;
	bool keeps = name_kept(d, r, &h->stamp, &kept);
	char name[320];
	int rc;

	if (keeps && image_set_take(&d->set, r, &kept))
		return 0;
	rc = fetch(d, r, err);
	if (rc)
		return rc;
	say_sample(d, r->split, r->index, name);
	rc = picture_load_memory(h->picture, name, h->bytes, sample_of(d, r->split, r->index)->bytes, &size, err);
	if (!rc)
		rc = image_set_render(&d->set, r, h->picture, size, err);
	if (!rc && keeps)
		image_set_keep(&d->set, r, &kept);
	return rc;
}

/* The same header as the first one's stands before pixels of the same shape. */
static int read_raw(const struct shards *d, const struct dataset_read *r, struct err *err)
{
	const struct sample *one = sample_of(d, r->split, r->index);
	size_t pixels = pixels_count(&d->set.base);
	struct objects_range range = range_of(d, r);
	char head[NPY_HEAD_MAX], name[320];
	int rc;

	say_sample(d, r->split, r->index, name);
	if (one->bytes != d->head_bytes + pixels)
		return err_set(err, ERR_CORRUPT, "%s: %u bytes; the other images have %zu", name, one->bytes,
			       d->head_bytes + pixels);
	range.n = d->head_bytes;
	rc = objects_read(d->store, &range, head, err);
	if (rc)
		return rc;
	if (memcmp(head, d->head, d->head_bytes))
		return err_set(err, ERR_CORRUPT, "%s: is no array of the same shape as the others", name);
	range.at += d->head_bytes;
	range.n = pixels;
	return objects_read(d->store, &range, r->pixels, err);
}

static int shards_read(const struct dataset *base, const struct dataset_read *r, struct err *err)
{
	struct shards *d = (struct shards *)base;
	struct err why = ERR_INIT;

	*r->label = sample_of(d, r->split, r->index)->label;
	if (!(d->raw ? read_raw(d, r, &why) : read_picture(d, r, &why)))
		return 0;
	return image_set_failed(&d->set, r, &why, err);
}

/* Mean and deviation of the training images, where no index file says them. */
static int measure(struct shards *d, struct err *err)
{
	struct dataset *b = &d->set.base;
	size_t each = pixels_count(b), n = (size_t)b->n_samples[SPLIT_TRAIN];
	uint8_t *all = n > SIZE_MAX / each ? NULL : calloc(n, each);
	int rc = 0;

	if (!all)
		return err_set(err, ERR_NOMEM, "out of memory: mean and deviation of %zu images", n);
	for (size_t i = 0; !rc && i < n; i++) {
		rc = read_raw(d, &(struct dataset_read){ .index = (int64_t)i, .pixels = all + i * each }, err);
		rc = rc == ERR_CORRUPT ? 0 : rc;
	}
	if (!rc)
		pixels_stats(b, all, (int64_t)n);
	free(all);
	return rc;
}

/* All images are as large as the first one. */
static int describe_raw(struct shards *d, struct err *err)
{
	struct dataset *b = &d->set.base;
	struct hand h = { NULL };
	struct npy a;
	char name[320];
	int rc;

	d->raw = true;
	b->ops = &raw_ops;
	rc = fetch(d, &(struct dataset_read){ .hand = &h }, err);
	say_sample(d, SPLIT_TRAIN, 0, name);
	if (!rc && (!npy_parse(h.bytes, sample_of(d, SPLIT_TRAIN, 0)->bytes, &a) || a.channels > DATASET_CHANNELS_MAX))
		rc = err_set(err, ERR_USAGE, "%s: is no whole array of bytes (u8, rows first, up to %d channels)", name,
			     DATASET_CHANNELS_MAX);
	if (!rc)
		memcpy(d->head, h.bytes, a.begin);
	free(h.bytes);
	if (rc)
		return rc;
	d->head_bytes = a.begin;
	b->height = a.height;
	b->width = a.width;
	b->channels = a.channels;
	if (d->facts.channels != a.channels)
		return measure(d, err);
	memcpy(b->mean, d->facts.mean, sizeof(b->mean));
	memcpy(b->std, d->facts.std, sizeof(b->std));
	return 0;
}

/* TensorFlow's ImageNet has a class for "nothing" in front. */
static void note_labels(struct shards *d)
{
	int32_t least = INT32_MAX;
	char text[512];

	for (int64_t i = 0; i < d->samples.n; i++)
		least = d->samples.at[i].label < least ? d->samples.at[i].label : least;
	if (least != 1)
		return;
	snprintf(text, sizeof(text), "%.300s: labels begin at 1 and are used as they are: class 0 stays empty",
		 d->set.base.path);
	image_set_note(&d->set, text);
}

static int note_lost(struct shards *d, struct err *err)
{
	const char *line = d->samples.notes;
	char text[512];
	size_t n;

	for (int i = 0; i < IMAGE_SET_NOTICES - 1 && (n = strcspn(line, "\n")) && line[n]; i++, line += n + 1) {
		snprintf(text, sizeof(text), "%.*s", (int)n, line);
		image_set_note(&d->set, text);
	}
	if (d->samples.lost > IMAGE_SET_NOTICES - 1) {
		snprintf(text, sizeof(text), "%.300s: %lld samples or stretches in all could not be used",
			 d->set.base.path, (long long)d->samples.lost);
		image_set_note(&d->set, text);
	}
	if (d->samples.lost && d->set.strict)
		return err_set(err, ERR_USAGE, "%.200s: %.*s", d->set.base.path,
			       (int)strcspn(d->samples.notes, "\n"), d->samples.notes);
	return image_set_lost(&d->set, d->samples.lost, err);
}

static uint64_t remote_bytes(const struct shards *d)
{
	uint64_t bytes = 0;

	for (int i = 0; i < objects_count(d->store); i++)
		bytes += strstr(objects_address(d->store, i), "://") ? objects_bytes(d->store, i) : 0;
	return bytes;
}

static int describe(struct shards *d, const struct dataset_opts *o, struct err *err)
{
	struct dataset *b = &d->set.base;
	size_t n;
	int rc;

	b->ops = &dataset_shards;
	if (!d->samples.n && d->samples.lost)
		return err_set(err, ERR_USAGE, "%.150s: no images to train on; %.*s", b->path,
			       (int)strcspn(d->samples.notes, "\n"), d->samples.notes);
	rc = image_set_describe(&d->set, o, classes_of(d), "classes", err);
	if (rc)
		return rc;
	n = strlen(samples_name(&d->samples, d->row[SPLIT_TRAIN][0]));
	if (n > 4 && !strcasecmp(samples_name(&d->samples, d->row[SPLIT_TRAIN][0]) + n - 4, ".npy"))
		rc = describe_raw(d, err);
	else
		rc = image_set_open_kept(&d->set, o, remote_bytes(d), err);
	note_labels(d);
	if (!rc)
		rc = note_lost(d, err);
	hash(d);
	return rc;
}

/* Pages that hold many samples are best read one after the other. */
static bool is_packed(const struct shards *d)
{
	return d->samples.n && d->samples.at[0].packed;
}

/* Room for as many pages as may be kept, or for all: with what else lies in them. */
static int open_pages(struct shards *d, struct err *err)
{
	uint64_t bytes = 0;

	for (int64_t i = 0; i < d->samples.n && bytes < PAGES_BYTES; i++)
		bytes += d->samples.at[i].packed ? d->samples.at[i].bytes + d->samples.at[i].bytes / 8 + 64 : 0;
	bytes = bytes < PAGES_BYTES ? bytes : PAGES_BYTES;
	d->set.base.buffer_bytes = objects_buffer_bytes(d->store) + bytes;
	return pages_new(&d->pages, d->store, bytes, err);
}

static int shards_open(struct dataset **ret, const struct dataset_opts *o, struct err *err)
{
	struct shards *d = calloc(1, sizeof(*d));
	int rc, train = 0;

	if (!d)
		return err_set(err, ERR_NOMEM, "out of memory");
	rc = image_set_init(&d->set, o->path, err);
	if (!rc)
		rc = objects_open(&d->store,
				  &(struct objects_opts){ .timeout_s = o->data_timeout_s,
							  .requests = o->read_ahead,
							  .cache = o->cache,
							  .cache_bytes = o->cache_bytes,
							  .memory_bytes = o->memory_bytes },
				  err);
	if (!rc)
		rc = add_shards(d, o, &train, err);
	d->cached_bytes = rc ? 0 : objects_cached(d->store);
	if (!rc && !d->classes)
		rc = find_samples(d, o, err);
	if (!rc)
		rc = deal(d, train, d->classes ? 0 : o->val_share, err);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		rc = cut_pieces(d, (enum split)s, err);
	if (!rc)
		rc = open_pages(d, err);
	d->set.base.far = d->store && (objects_far(d->store) || is_packed(d));
	if (!rc)
		rc = describe(d, o, err);
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
	const struct sample *one = sample_of(d, r->split, r->index);
	const char *dot = strrchr(samples_name(&d->samples, d->row[r->split][r->index]), '.');
	char *room;
	int rc;

	buf_reset(&ret->bytes);
	room = buf_reserve(&ret->bytes, one->bytes);
	if (!room)
		return err_set(err, ERR_NOMEM, "out of memory: %u bytes of a sample", one->bytes);
	rc = read_bytes(d, r, room, err);
	ret->bytes.len = rc ? 0 : one->bytes;
	ret->ending = !strcasecmp(dot, ".npy") ? "npy"
		      : ret->bytes.len > 4 && !memcmp(ret->bytes.data, "\x89PNG", 4) ? "png" : "jpg";
	ret->label = one->label;
	return rc;
}

static void shards_where(const struct dataset *base, enum split split, int64_t index, char *ret, size_t bytes)
{
	const struct shards *d = (const struct shards *)base;

	snprintf(ret, bytes, "%s: %s", objects_name(d->store, (int)sample_of(d, split, index)->object),
		 samples_name(&d->samples, d->row[split][index]));
}

static bool shards_notice(struct dataset *base, char *ret, size_t bytes)
{
	return image_set_notice(base, ret, bytes) || objects_notice(((struct shards *)base)->store, ret, bytes);
}

static void shards_traffic(const struct dataset *base, struct dataset_traffic *ret)
{
	struct objects_traffic t = objects_traffic(((const struct shards *)base)->store);
	const struct derived *kept = ((const struct shards *)base)->set.kept;

	*ret = (struct dataset_traffic){ .remote_bytes = t.remote_bytes,
					 .cache_bytes = t.cache_bytes + (kept ? derived_bytes(kept) : 0),
					 .local_bytes = t.local_bytes,
					 .requests = t.requests,
					 .retries = t.retries };
}

static void shards_facts(const struct dataset *base, enum split split, struct dataset_facts *ret)
{
	const struct shards *d = (const struct shards *)base;

	ret->format = d->classes ? dataset_folder.name : shard_list_format(objects_name(d->store, 0));
	ret->shards = d->classes ? 0 : base->n_pieces[split];
	for (int64_t i = 0; i < base->n_samples[split]; i++)
		ret->bytes += sample_of(d, split, i)->bytes;
	ret->cached_bytes = d->cached_bytes;
}

static void shards_sum(const struct dataset *base, enum split split, struct sha256 *to)
{
	const struct shards *d = (const struct shards *)base;

	for (int64_t i = 0; i < base->n_samples[split]; i++) {
		const struct sample *one = sample_of(d, split, i);
		const char *name = samples_name(&d->samples, d->row[split][i]);
		uint32_t facts[2] = { one->bytes, (uint32_t)one->label };

		sha256_add(to, name, strlen(name) + 1);
		sha256_add(to, facts, sizeof(facts));
	}
}

static int shards_hand(void **ret, struct err *err)
{
	struct hand *h = calloc(1, sizeof(*h));
	int rc = h ? picture_new(&h->picture, err) : err_set(err, ERR_NOMEM, "out of memory");

	if (rc) {
		free(h);
		return rc;
	}
	buf_init(&h->stamp, STAMP_BYTES_MAX);
	*ret = h;
	return 0;
}

static void shards_drop(void *hand)
{
	struct hand *h = hand;

	picture_free(h->picture);
	buf_done(&h->stamp);
	free(h->bytes);
	free(h);
}

const struct dataset_ops dataset_shards = {
	.name = "shards",
	.expects = "*.tar (WebDataset shards, as from dptrain shard), *.tfrecord, *.parquet, *.arrow, data.mdb (LMDB)",
	.probe = shards_probe,
	.open = shards_open,
	.read = shards_read,
	.close = shards_close,
	.hand_new = shards_hand,
	.hand_free = shards_drop,
	.notice = shards_notice,
	.broken = image_set_broken,
	.file = shards_file,
	.ahead = shards_ahead,
	.traffic = shards_traffic,
	.facts = shards_facts,
	.where = shards_where,
	.sum = shards_sum,
};

/* The same for images that are stored as they are: nothing is decoded. */
static const struct dataset_ops raw_ops = {
	.name = "shards",
	.read = shards_read,
	.close = shards_close,
	.notice = shards_notice,
	.broken = image_set_broken,
	.file = shards_file,
	.ahead = shards_ahead,
	.traffic = shards_traffic,
	.facts = shards_facts,
	.where = shards_where,
	.sum = shards_sum,
};
