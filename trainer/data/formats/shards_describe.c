/* shards_describe.c: determines the properties of a set when it is opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tracker/base/crc32c.h"
#include "trainer/data/formats/shards_inside.h"
#include "trainer/data/pictures/pixels.h"

/* Hashes keys, sizes and labels, but neither pixels nor positions: a copy of the set has the same hash. */
static void hash_shard_samples(struct shards *d)
{
	uint32_t c[SPLIT_COUNT] = { 0 };

	for (int s = 0; s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->set.base.n_samples[s]; i++) {
			const struct sample *one = shards_sample(d, (enum split)s, i);
			const char *name = samples_name(&d->samples, d->row[s][i]);
			uint32_t facts[2] = { one->bytes, (uint32_t)one->label };

			c[s] = crc32c(crc32c(c[s], name, strlen(name)), facts, sizeof(facts));
		}
	snprintf(d->set.base.hash, sizeof(d->set.base.hash), "shards-%08x-%08x", c[SPLIT_TRAIN], c[SPLIT_VAL]);
}

static int count_label_classes(const struct shards *d)
{
	int32_t most = -1;

	for (int64_t i = 0; i < d->samples.n; i++)
		most = d->samples.at[i].label > most ? d->samples.at[i].label : most;
	return most + 1 > d->facts.classes ? most + 1 : d->facts.classes;
}

/* Measures mean and deviation of the training images if no index file states them. */
static int measure_raw_stats(struct shards *d, struct err *err)
{
	struct dataset *b = &d->set.base;
	size_t each = pixels_count(b), n = (size_t)b->n_samples[SPLIT_TRAIN];
	uint8_t *all = n > SIZE_MAX / each ? NULL : calloc(n, each);
	int rc = 0;

	if (!all)
		return err_set(err, ERR_NOMEM, "out of memory: mean and deviation of %zu images", n);
	for (size_t i = 0; !rc && i < n; i++) {
		rc = shards_read_raw(d, &(struct dataset_read){ .index = (int64_t)i, .pixels = all + i * each }, err);
		rc = rc == ERR_CORRUPT ? 0 : rc;
	}
	if (!rc)
		pixels_stats(b, all, (int64_t)n);
	free(all);
	return rc;
}

/* Reads the header of the first image; all images must have its size. */
static int describe_raw_images(struct shards *d, const struct dataset_ops *ops, struct err *err)
{
	struct dataset *b = &d->set.base;
	struct shards_hand h = { NULL };
	struct npy a;
	char name[320];
	size_t n;
	int rc;

	d->raw = true;
	b->ops = ops;
	rc = shards_fetch(d, &(struct dataset_read){ .hand = &h }, err);
	shards_say(d, SPLIT_TRAIN, 0, name);
	n = rc ? 0 : shards_sample(d, SPLIT_TRAIN, 0)->bytes;
	if (!rc && (!npy_parse(h.bytes, n, &a) || a.channels > DATASET_CHANNELS_MAX))
		rc = err_set(err, ERR_USAGE,
			     "%s: is not a complete array of bytes: expected u8, C order, up to %d channels", name,
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
		return measure_raw_stats(d, err);
	memcpy(b->mean, d->facts.mean, sizeof(b->mean));
	memcpy(b->std, d->facts.std, sizeof(b->std));
	return 0;
}

/* Says that some labels do not occur, unless an index file or the user states the number of classes. */
static void note_label_gaps(struct shards *d, const struct dataset_opts *o)
{
	const int classes = count_label_classes(d);
	uint8_t *seen = o->classes || d->facts.classes || d->classes ? NULL : calloc((size_t)classes / 8 + 1, 1);
	char text[512], gaps[256];

	for (int64_t i = 0; seen && i < d->samples.n; i++)
		seen[d->samples.at[i].label / 8] |= (uint8_t)(1 << d->samples.at[i].label % 8);
	if (seen && labels_have_gaps(seen, classes, gaps, sizeof(gaps))) {
		snprintf(text, sizeof(text), "%.250s: %s", d->set.base.path, gaps);
		image_set_note(&d->set, text);
	}
	free(seen);
}

static int note_lost_samples(struct shards *d, struct err *err)
{
	const char *line = d->samples.notes;
	char text[512];
	size_t n;

	for (int i = 0; i < IMAGE_SET_NOTICES - 1 && (n = strcspn(line, "\n")) && line[n]; i++, line += n + 1) {
		snprintf(text, sizeof(text), "%.*s", (int)n, line);
		image_set_note(&d->set, text);
	}
	if (d->samples.lost > IMAGE_SET_NOTICES - 1) {
		snprintf(text, sizeof(text), "%.300s: %lld samples or stretches are unusable in total",
			 d->set.base.path, (long long)d->samples.lost);
		image_set_note(&d->set, text);
	}
	if (d->samples.lost && d->set.strict)
		return err_set(err, ERR_USAGE, "%.200s: %.*s", d->set.base.path,
			       (int)strcspn(d->samples.notes, "\n"), d->samples.notes);
	return image_set_lost(&d->set, d->samples.lost, err);
}

/* Returns true for arrays of the first one's size, which are delivered unchanged. Arrays of various sizes, or marked
 * so in the index, are decoded pictures. */
static bool has_raw_images(const struct shards *d)
{
	const char *name = samples_name(&d->samples, d->row[SPLIT_TRAIN][0]);
	int64_t n = d->set.base.n_samples[SPLIT_TRAIN], same = 0;
	size_t length = strlen(name);

	if (length < 4 || strcasecmp(name + length - 4, ".npy") || d->facts.decoded)
		return false;
	for (int64_t i = 0; i < n; i++)
		same += shards_sample(d, SPLIT_TRAIN, i)->bytes == shards_sample(d, SPLIT_TRAIN, 0)->bytes;
	return d->facts.channels || 2 * same > n;
}

static uint64_t count_remote_bytes(const struct shards *d)
{
	uint64_t bytes = 0;

	for (int i = 0; i < objects_count(d->store); i++)
		bytes += strstr(objects_address(d->store, i), "://") ? objects_bytes(d->store, i) : 0;
	return bytes;
}

int shards_describe(struct shards *d, const struct dataset_opts *o, const struct dataset_ops *raw_ops, struct err *err)
{
	struct dataset *b = &d->set.base;
	int rc;

	if (!d->samples.n && d->samples.lost)
		return err_set(err, ERR_USAGE, "%.150s: no images to train on; %.*s", b->path,
			       (int)strcspn(d->samples.notes, "\n"), d->samples.notes);
	if (d->samples.n_classes) {
		b->class_names = (const char *const *)d->samples.class_names;
		b->n_class_names = d->samples.n_classes;
	}
	rc = image_set_describe(&d->set, o, count_label_classes(d), "classes", err);
	if (rc)
		return rc;
	if (has_raw_images(d))
		rc = describe_raw_images(d, raw_ops, err);
	else
		rc = image_set_open_kept(&d->set, o, count_remote_bytes(d), err);
	note_label_gaps(d, o);
	if (!rc)
		rc = note_lost_samples(d, err);
	hash_shard_samples(d);
	return rc;
}
