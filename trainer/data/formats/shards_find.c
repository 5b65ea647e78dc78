/* SPDX-License-Identifier: Apache-2.0 */
/* shards_find.c: finds the objects of a set and the position of each sample; the result is cached (formats.h). Then
 * determines the properties of the set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tracker/base/crc32c.h"
#include "tracker/mem/mem.h"
#include "trainer/data/container/webdataset.h"
#include "trainer/data/formats/folder.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/formats/shards_inside.h"
#include "trainer/data/pictures/pixels.h"

/* The flags' defaults, which checkpoints record: they stay, and stand for the usual names of each format. */
#define IMAGE_FIELDS_DEFAULT "jpg;jpeg;png;npy"
#define IMAGE_FIELDS "jpg;jpeg;png;webp;tif;tiff;bmp;npy"
#define LABEL_FIELDS "cls"
#define NOTES_MOST (IMAGE_SET_NOTICES - 2) /* and two lines about the set */

/* Adds single pictures at an address, the training pictures first. */
static int add_remote_pictures(struct shards *d, const struct dataset_opts *o, int *ret_train, struct err *err)
{
	struct folder_remote found = { .n_train = 0 };
	int rc = folder_remote_find(&found, d->store,
				    &(struct folder_remote_opts){ .address = o->path,
								  .store = { .timeout_s = o->data_timeout_s },
								  .val_share = o->val_share,
								  .account = &d->set.base.account },
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

static int add_shard_object(struct objects *store, const char *address, const struct shard_sums *sums, struct err *err)
{
	const struct objects_entry listed = { address, sums->listed_bytes, sums->version };
	int number =
		sums->version ? objects_add_listed(store, address, &listed, err) : objects_add(store, address, err);

	if (number >= 0 && sums->n)
		objects_set_sums(store, number, sums->at, sums->n);
	return number;
}

/* File name of the sample table: 16 hex digits that hash everything it depends on. */
static void make_table_name(const struct shards *d, const struct webdataset_fields *f, char ret[32])
{
	char hex[65];
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_addf(&b, "3 %s %s %d %d\n", f->image, f->label, f->image_given, f->label_given);
	for (int i = 0; i < objects_count(d->store); i++)
		objects_stamp(d->store, i, &b);
	sha256_hex(b.data, b.len, hex);
	snprintf(ret, 32, "%.16s.samples", hex);
	buf_done(&b);
}

/* The file may be forged: refuses rows that exceed their shard and unterminated names. */
static bool is_valid_table(const struct shards *d, const struct samples *s)
{
	size_t names = (size_t)(s->columns - s->names);
	uint64_t n = (uint64_t)objects_count(d->store);

	if (s->n && (!names || s->names[names - 1]))
		return false;
	for (int64_t i = 0; i < s->n; i++) {
		const struct sample *one = &s->at[i];

		if (one->object >= n || one->key >= names || one->label < 0 ||
		    (s->n_classes && one->label >= s->n_classes) ||
		    one->offset > objects_bytes(d->store, (int)one->object) ||
		    (!one->packed && one->bytes > objects_bytes(d->store, (int)one->object) - one->offset))
			return false;
	}
	return true;
}

static bool load_kept_table(struct shards *d, const char *path)
{
	if (!samples_take(&d->samples, path))
		return false;
	if (is_valid_table(d, &d->samples))
		return true;
	samples_done(&d->samples);
	return false;
}

static void note_shards_read(struct shards *d, int whole)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "%.300s: %d of %d shards have no complete .idx next to them: they were read completely",
		 d->set.base.path, whole, objects_count(d->store));
	image_set_note(&d->set, text);
}

/* The defaults of --image-field and --label-field leave the usual names of each format to it. */
static struct webdataset_fields wanted_fields(const struct dataset_opts *o)
{
	struct webdataset_fields f = { .image = IMAGE_FIELDS, .label = LABEL_FIELDS };

	f.image_given = o->image_field && strcmp(o->image_field, IMAGE_FIELDS_DEFAULT);
	f.label_given = o->label_field && strcmp(o->label_field, LABEL_FIELDS);
	f.image = f.image_given ? o->image_field : f.image;
	f.label = f.label_given ? o->label_field : f.label;
	return f;
}

/* Loads the sample table, or builds it. One rank builds it, under a lock; the others of the machine wait and load
 * it. */
static int find_shard_samples(struct shards *d, const struct dataset_opts *o, const struct shard_sums *known,
			      struct err *err)
{
	const struct webdataset_fields f = wanted_fields(o);
	char folder[CACHE_DIR_PATH_BYTES], path[CACHE_DIR_PATH_BYTES], name[32];
	int rc = 0, lock = -1, whole = 0;
	bool kept;

	make_table_name(d, &f, name);
	kept = cache_dir_beside(o->path, folder) && cache_dir_join(path, folder, name);
	if (!kept)
		kept = cache_dir_in_cache(o->path, folder) && cache_dir_join(path, folder, name);
	if (kept && load_kept_table(d, path))
		return 0;
	if (kept)
		lock = cache_dir_lock(folder);
	if (!kept || !load_kept_table(d, path)) {
		rc = shard_index(&d->samples, d->store, &(struct shard_index_opts){ &f, known, o->data_timeout_s },
				 &whole, err);
		if (!rc && kept)
			samples_keep(&d->samples, path);
		if (!rc && whole)
			note_shards_read(d, whole);
	}
	if (lock >= 0)
		close(lock);
	return rc;
}

/* Opens the shards of both splits; *ret_train: number of training shards. Without validation shards, all of them are
 * for training. */
static int add_set_objects(struct shards *d, const struct dataset_opts *o, int *ret_train, struct err *err)
{
	bool index = folder_remote_is_index(o->path) && !o->val_path;
	bool one_folder = objects_is_folder(o->path) && !strstr(o->path, "::") && !strchr(o->path, '{');
	struct shard_list list = { .timeout_s = o->data_timeout_s, .may_be_none = one_folder && !o->val_path,
				   .account = &d->set.base.account };
	int rc = index ? shard_list_check(o->path, err) : shard_list_add(&list, o->path, SHARDS_TRAIN, err);

	*ret_train = list.n;
	d->facts = list.facts;
	list.facts.names = NULL; /* moved */
	if (!o->val_path)
		list.account = NULL; /* the second call lists the same folder */
	if (!rc && !index)
		rc = o->val_path ? shard_list_add(&list, o->val_path, SHARDS_ALL, err)
				 : shard_list_add(&list, o->path, SHARDS_VAL, err);
	if (!rc && *list.gap && o->strict)
		rc = err_set(err, ERR_USAGE, "%s: --strict: restore them, or omit the flag", list.gap);
	else if (*list.gap)
		image_set_note(&d->set, list.gap);
	for (int i = 0; rc >= 0 && i < list.n; i++)
		rc = add_shard_object(d->store, list.address[i], &list.sums[i], err);
	if (rc >= 0 && !list.n) {
		d->set.base.account = (struct data_account){ .hidden = 0 };
		rc = add_remote_pictures(d, o, ret_train, err);
	}
	if (rc >= 0)
		rc = objects_measure(d->store, err);
	d->cached_bytes = rc ? 0 : objects_cached(d->store);
	if (!rc && list.n)
		rc = find_shard_samples(d, o, list.sums, err);
	shard_list_done(&list);
	return rc;
}

/* Chooses by the hash of the key, so the same samples are for validation on every machine, whatever is added to the
 * set. */
static enum split choose_sample_split(const struct shards *d, int64_t row, int train, double val_share)
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

static int split_samples(struct shards *d, int train, double val_share, struct err *err)
{
	int64_t n = d->samples.n;

	if (n > DATASET_SAMPLES_MAX)
		return err_set(err, ERR_USAGE, "%.200s: has %lld samples: expected at most %lld", d->set.base.path,
			       (long long)n, (long long)DATASET_SAMPLES_MAX);
	for (int s = 0; s < SPLIT_COUNT; s++)
		d->row[s] = mem_alloc((size_t)n * sizeof(*d->row[s]));
	for (int64_t i = 0; i < n; i++) {
		enum split s = choose_sample_split(d, i, train, val_share);

		d->row[s][d->set.base.n_samples[s]++] = (uint32_t)i;
	}
	return 0;
}

/* Rows of a shard are consecutive; they form a piece. */
static void mark_shard_pieces(struct shards *d, enum split s)
{
	struct dataset *b = &d->set.base;
	int64_t n = b->n_samples[s], count = 0;

	d->piece[s] = mem_array((size_t)objects_count(d->store) + 1, sizeof(*d->piece[s]));
	for (int64_t i = 0; i < n; i++)
		if (!i || d->samples.at[d->row[s][i]].object != d->samples.at[d->row[s][i - 1]].object)
			d->piece[s][count++] = i;
	d->piece[s][count] = n;
	b->piece[s] = d->piece[s];
	b->n_pieces[s] = count;
}

/* ---- the account ---- */

/* The used shards of a local folder. */
struct shard_names {
	const char **address; /* n of them, sorted */
	size_t n;
	const char *folder;
};

static int compare_addresses(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns true if the first `length` bytes of name are those of a used shard in the folder, followed by `ending`. */
static bool is_used_shard(const struct shard_names *s, const char *name, size_t length, const char *ending)
{
	const size_t n = strlen(s->folder);
	char address[CACHE_DIR_PATH_BYTES];
	const char *key = address;

	snprintf(address, sizeof(address), "%s%s%.*s%s", s->folder, n && s->folder[n - 1] == '/' ? "" : "/",
		 (int)length, name, ending);
	return bsearch(&key, s->address, s->n, sizeof(*s->address), compare_addresses) != NULL;
}

static enum data_account_fate decide_shard_fate(void *user, const char *name, char why[DATA_ACCOUNT_TEXT_BYTES])
{
	const struct shard_names *s = user;
	const size_t n = strlen(name);

	if (n && name[n - 1] == '/')
		return DATA_ACCOUNT_LEFT;
	if (is_used_shard(s, name, n, ""))
		return DATA_ACCOUNT_USED;
	if (n > 4 && !strcmp(name + n - 4, ".idx") && is_used_shard(s, name, n - 4, SHARD_SUFFIX))
		return DATA_ACCOUNT_USED;
	if (!strcmp(name, "train.json") || !strcmp(name, "val.json") || shard_list_describes(name))
		return DATA_ACCOUNT_USED;
	if (n > 8 && !strcmp(name + n - 8, "lock.mdb"))
		return DATA_ACCOUNT_USED;
	if (strcmp(name + (n > 5 ? n - 5 : 0), ".json") && shard_list_probe(name))
		snprintf(why, DATA_ACCOUNT_TEXT_BYTES, "shards of a split that is not used");
	return DATA_ACCOUNT_LEFT;
}

static void account_shard_folder(struct data_account *a, struct shard_names *s, const char *folder)
{
	s->folder = folder;
	data_account_walk(a, folder, &(struct data_account_rule){ decide_shard_fate, s });
}

static bool is_local_folder(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Counts the files of local folders, or the shards that are named one by one. */
static void account_shards(struct shards *d, const struct dataset_opts *o)
{
	struct data_account *a = &d->set.base.account;
	struct shard_names s = { .n = (size_t)objects_count(d->store) };

	if (d->samples.lost)
		data_account_leave_samples(a, d->samples.lost, NULL, "%.*s", (int)strcspn(d->samples.notes, "\n"),
					   d->samples.notes);
	if (d->classes)
		return;
	if (!is_local_folder(o->path) || (o->val_path && !is_local_folder(o->val_path))) {
		for (int i = 0; i < objects_count(d->store); i++)
			data_account_use_kind(a, shard_list_format(objects_name(d->store, i)), 1);
		return;
	}
	s.address = mem_array(s.n, sizeof(*s.address));
	for (size_t i = 0; i < s.n; i++)
		s.address[i] = objects_address(d->store, (int)i);
	qsort(s.address, s.n, sizeof(*s.address), compare_addresses);
	account_shard_folder(a, &s, o->path);
	if (o->val_path && strcmp(o->val_path, o->path))
		account_shard_folder(a, &s, o->val_path);
	free(s.address);
}

int shards_find(struct shards *d, const struct dataset_opts *o, struct err *err)
{
	int train = 0, rc = add_set_objects(d, o, &train, err);

	if (!rc)
		rc = split_samples(d, train, d->classes ? 0 : o->val_share, err);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		mark_shard_pieces(d, (enum split)s);
	if (!rc)
		account_shards(d, o);
	return rc;
}

/* ---- properties ---- */

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
	most = most + 1 > d->facts.classes ? most + 1 : d->facts.classes;
	return most > d->samples.n_classes ? most : d->samples.n_classes;
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

static int note_lost_samples(struct shards *d, struct err *err)
{
	const char *line = d->samples.notes;
	char text[512];
	size_t n;

	for (int i = 0; i < NOTES_MOST && (n = strcspn(line, "\n")) && line[n]; i++, line += n + 1) {
		snprintf(text, sizeof(text), "%.*s", (int)n, line);
		image_set_note(&d->set, text);
	}
	return image_set_lost(&d->set, d->samples.lost, d->samples.notes, err);
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

int shards_describe(struct shards *d, const struct dataset_opts *o, const struct dataset_ops *raw_ops, struct err *err)
{
	struct dataset *b = &d->set.base;
	int rc;

	if (!d->samples.n && d->samples.lost)
		return err_set(err, ERR_USAGE, "%.150s: no images to train on; %.*s", b->path,
			       (int)strcspn(d->samples.notes, "\n"), d->samples.notes);
	b->columns = d->samples.columns;
	if (d->samples.n_classes) {
		b->class_names = (const char *const *)d->samples.class_names;
		b->n_class_names = d->samples.n_classes;
	} else if (d->facts.names && !d->classes) {
		b->class_names = d->facts.names;
		b->n_class_names = d->facts.classes;
	}
	rc = image_set_describe(&d->set, o, count_label_classes(d), "classes", err);
	if (rc)
		return rc;
	if (has_raw_images(d))
		rc = describe_raw_images(d, raw_ops, err);
	b->classes_stated = d->facts.classes > 0;
	if (!rc)
		rc = note_lost_samples(d, err);
	hash_shard_samples(d);
	return rc;
}
