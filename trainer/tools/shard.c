/* SPDX-License-Identifier: Apache-2.0 */
/* shard.c: `dptrain shard`. Stores each picture as an unchanged file or with restart markers; images of sets without
 * files as NumPy arrays. The seed determines the order, so that neighbours are unrelated. */
#include "trainer/tools/subcommands.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/log.h"
#include "tracker/base/terminal.h"
#include "trainer/data/container/shard_writer.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/pictures/npy.h"
#include "trainer/data/pictures/picture.h"
#include "trainer/launch/rank_context.h"
#include "trainer/program/workload.h"
#include "trainer/tools/out_folder.h"

#define SAMPLE_BYTES_MAX ((size_t)1 << 31)
#define LOST_NAMED 16

struct shard_job {
	const struct run_config *cfg;
	struct dataset *data;
	uint64_t shard_bytes;
	char folder[OUT_FOLDER_BYTES]; /* temporary name */
	struct dataset_file file;
	struct buf pixels;	 /* pixels of a decoded picture */
	struct picture *picture; /* its decoder */
	int64_t lost;		 /* pictures of a split that cannot be read */
	struct err first_lost;	 /* why the first one cannot */
	struct buf *out;
	struct terminal_progress progress; /* of a split */
	struct restart_counts {		   /* counts of a split with --restart-markers */
		int64_t pictures, written; /* all pictures, rewritten ones */
		uint64_t before, after;	   /* bytes of the rewritten ones */
	} marked;
};

/* Opens the set that --data-path names: images or pictures. */
static int open_source_set(struct shard_job *j, struct err *err)
{
	const struct run_config *cfg = j->cfg;
	int rc = formats_open(&j->data,
			      &(struct dataset_opts){ .path = cfg->data_path,
						      .val_share = cfg->val_split,
						      .strict = cfg->strict,
						      .data_timeout_s = cfg->data_timeout,
						      .image_field = cfg->image_field,
						      .label_field = cfg->label_field },
			      err);

	if (rc)
		return rc;
	workload_warn(j->data);
	if (j->data->kind != SAMPLE_IMAGE || j->data->dtype != DTYPE_U8)
		return err_set(err, ERR_USAGE, "%.300s: holds %s: shards need pictures or images", cfg->data_path,
			       sample_kind_name(j->data->kind));
	if (cfg->decode && !j->data->ops->hand_new)
		return err_set(err, ERR_USAGE, "--decode: %.300s: holds no encoded pictures: omit it", cfg->data_path);
	if (j->data->ops->hand_new)
		j->picture = picture_new();
	return 0;
}

/* Reads an image of a set without files as an array. */
static int read_array_sample(struct shard_job *j, const struct dataset_read *r, struct err *err)
{
	const struct dataset *d = j->data;
	size_t n = (size_t)d->height * (size_t)d->width * (size_t)d->channels;
	struct npy a = { d->height, d->width, d->channels, 0 };
	struct dataset_read with = *r;
	char *room;
	int rc;

	buf_reset(&j->file.bytes);
	room = buf_reserve(&j->file.bytes, NPY_HEAD_BYTES + n);
	if (!room)
		return err_set(err, ERR_NOMEM, "out of memory: a sample of %zu bytes", n);
	npy_head(&a, room);
	with.pixels = room + NPY_HEAD_BYTES;
	with.label = &j->file.label;
	rc = dataset_read(d, &with, err);
	j->file.bytes.len = rc ? 0 : NPY_HEAD_BYTES + n;
	j->file.ending = "npy";
	return rc;
}

/* Replaces the picture by one with restart markers, if its format supports them. */
static int mark_picture(struct shard_job *j, struct shard_item *picture, uint8_t **ret, struct err *err)
{
	size_t n = 0;
	int rc = restart_write(picture->bytes, picture->n, ret, &n, err);

	j->marked.pictures++;
	if (rc <= 0)
		return rc;
	j->marked.written++;
	j->marked.before += picture->n;
	j->marked.after += n;
	picture->bytes = *ret;
	picture->n = n;
	return 0;
}

/* Decodes the loaded picture to an array whose shorter side is at most --decode. ERR_CORRUPT: it cannot be decoded. */
static int decode_picture(struct shard_job *j, struct shard_item *picture, struct picture_size size, struct err *err)
{
	const int shorter = size.width < size.height ? size.width : size.height;
	const int side = shorter < j->cfg->decode ? shorter : (int)j->cfg->decode;
	struct npy a = { .width = (int)((int64_t)size.width * side / shorter),
			 .height = (int)((int64_t)size.height * side / shorter),
			 .channels = 3 };
	size_t n;
	char *room;
	int rc;

	n = NPY_HEAD_BYTES + 3 * (size_t)a.width * (size_t)a.height;
	buf_reset(&j->pixels);
	room = buf_reserve(&j->pixels, n);
	if (!room)
		return err_set(err, ERR_NOMEM, "out of memory: a picture of %d x %d pixels", a.width, a.height);
	npy_head(&a, room);
	rc = picture_render(j->picture,
			    &(struct picture_view){ .width = size.width,
						    .height = size.height,
						    .out_width = a.width,
						    .out_height = a.height },
			    (uint8_t *)room + NPY_HEAD_BYTES, err);
	*picture = (struct shard_item){ "npy", room, n };
	return rc;
}

/* Decodes a pixel, so that shards hold only pictures: of a truncated file, decoders then read all. With --decode
 * decodes all. ERR_CORRUPT: it cannot be read. */
static int prepare_picture(struct shard_job *j, struct shard_item *picture, const struct dataset_read *r,
			   struct err *err)
{
	const struct picture_view corner = { .width = 1, .height = 1, .out_width = 1, .out_height = 1 };
	struct picture_input in = { .data = picture->bytes, .n = picture->n };
	struct picture_size size;
	uint8_t pixel[4];
	char name[512];
	int rc;

	dataset_where(j->data, r->split, r->index, name, sizeof(name));
	in.name = name;
	rc = picture_load_memory(j->picture, &in, &size, err);
	if (!rc)
		rc = j->cfg->decode ? decode_picture(j, picture, size, err)
				    : picture_render(j->picture, &corner, pixel, err);
	return rc;
}

/* Skips a picture that cannot be read, and names it. */
static int skip_picture(struct shard_job *j, const struct err *why)
{
	if (why->code != ERR_CORRUPT || j->cfg->strict)
		return why->code;
	if (!j->lost)
		j->first_lost = *why;
	if (j->lost++ < LOST_NAMED) {
		terminal_progress_clear(&j->progress);
		log_warn("%s: skipped", why->text);
	}
	return 0;
}

/* Reads one sample, converts it as the flags say, and adds it to the shard. */
static int add_shard_sample(struct shard_job *j, struct shard_writer *w, const struct dataset_read *r, struct err *err)
{
	char key[32], label[32];
	struct shard_item items[2];
	uint8_t *marked = NULL;
	struct err why = ERR_INIT;
	int rc = j->data->ops->file ? j->data->ops->file(j->data, r, &j->file, err) : read_array_sample(j, r, err);

	if (rc)
		return rc;
	snprintf(key, sizeof(key), "%09lld", (long long)r->index);
	snprintf(label, sizeof(label), "%d", j->file.label);
	items[0] = (struct shard_item){ j->file.ending, j->file.bytes.data, j->file.bytes.len };
	items[1] = (struct shard_item){ "cls", label, strlen(label) };
	rc = j->picture ? prepare_picture(j, &items[0], r, &why) : 0;
	if (rc)
		return skip_picture(j, &why) ? err_set(err, rc == ERR_CORRUPT ? ERR_USAGE : rc, "%s", why.text) : 0;
	if (!j->cfg->decode && j->cfg->restart_markers && j->data->ops->file)
		rc = mark_picture(j, &items[0], &marked, err);
	if (j->data->ops->hand_new && !strcmp(items[0].field, "npy"))
		shard_writer_say_decoded(w);
	if (!rc)
		rc = shard_writer_add(w, key, items, 2, err);
	free(marked);
	return rc;
}

static struct shard_writer_opts writer_opts(const struct shard_job *j, enum split split)
{
	const struct dataset *d = j->data;
	struct shard_writer_opts o = { .folder = j->folder,
				       .part = split_name(split),
				       .shard_bytes = j->shard_bytes,
				       .classes = d->class_names,
				       .n_classes = d->n_class_names,
				       .channels = d->ops->file ? 0 : d->channels };

	memcpy(o.mean, d->mean, sizeof(o.mean));
	memcpy(o.std, d->std, sizeof(o.std));
	return o;
}

static void report_restart_markers(const struct shard_job *j)
{
	const struct restart_counts *m = &j->marked;

	if (m->pictures)
		buf_addf(j->out, "%s: %lld of %lld pictures have restart markers, %+.1f %% bytes\n", j->cfg->out,
			 (long long)m->written, (long long)m->pictures,
			 m->before ? 100 * ((double)m->after / (double)m->before - 1) : 0.0);
}

/* Writes the shards of one split and reports on them. */
static int write_split_shards(struct shard_job *j, enum split split, struct err *err)
{
	const struct shard_writer_opts o = writer_opts(j, split);
	const char *what = split == SPLIT_TRAIN ? "training samples" : "validation samples";
	int64_t n = j->data->n_samples[split];
	struct shard_writer *w = shard_writer_new(&o);
	struct permute order;
	int rc = 0;

	j->marked = (struct restart_counts){ 0 };
	j->lost = 0;
	permute_init(&order, (struct rng_key){ (uint64_t)j->cfg->seed, rng_stream("shard") ^ (uint64_t)split },
		     (uint64_t)n);
	terminal_progress_begin(&j->progress, what, (uint64_t)n);
	for (int64_t i = 0; !rc && i < n; i++) {
		int64_t from = j->cfg->order == CONFIG_ORDER_KEPT ? i : (int64_t)permute_at(&order, (uint64_t)i);

		rc = add_shard_sample(j, w, &(struct dataset_read){ .split = split, .index = from }, err);
		if (!rc && rank_context_kept_stop())
			rc = err_set(err, ERR_CANCELED, "stopped by a signal: nothing was written");
		terminal_progress_show(&j->progress, (uint64_t)i + 1);
	}
	terminal_progress_clear(&j->progress);
	if (!rc && j->lost == n)
		rc = err_set(err, ERR_USAGE, "%.150s: none of the %lld %s can be read: %.200s", j->cfg->data_path,
			     (long long)n, what, j->first_lost.text);
	if (!rc)
		rc = shard_writer_end(w, err);
	if (!rc)
		buf_addf(j->out, "%s: %lld %.*s in %d shard%s, %.1f MiB\n", j->cfg->out, (long long)(n - j->lost),
			 (int)strlen(what) - (n - j->lost == 1), what, shard_writer_shards(w),
			 shard_writer_shards(w) > 1 ? "s" : "", (double)shard_writer_bytes(w) / 1048576);
	if (!rc)
		report_restart_markers(j);
	if (!rc && j->lost)
		buf_addf(j->out, "%s: left out %lld of %lld %s: cannot be read\n", j->cfg->out, (long long)j->lost,
			 (long long)n, what);
	shard_writer_free(w);
	return rc;
}

int shard_main(const struct run_config *cfg, struct buf *out, struct err *err)
{
	struct shard_job j = { .cfg = cfg, .out = out };
	int rc;

	if (!cfg->data_path || !cfg->out)
		return err_set(err, ERR_USAGE, "dptrain shard needs %s",
			       cfg->data_path ? "--out DIR" : "--data-path SET");
	if (cfg->decode && cfg->restart_markers)
		return err_set(err, ERR_USAGE, "--decode and --restart-markers contradict: give one of them");
	buf_init(&j.file.bytes, SAMPLE_BYTES_MAX);
	buf_init(&j.pixels, SAMPLE_BYTES_MAX);
	rc = config_bytes(cfg, FLAG_shard_size, cfg->shard_size, &j.shard_bytes, err);
	if (!rc)
		rc = open_source_set(&j, err);
	rank_context_keep_stop();
	if (!rc)
		rc = out_folder_make(j.folder, cfg->out, "shards", err);
	for (int s = 0; !rc && s < SPLIT_COUNT; s++)
		if (j.data->n_samples[s])
			rc = write_split_shards(&j, (enum split)s, err);
	if (!rc)
		rc = out_folder_publish(j.folder, cfg->out, err);
	if (rc)
		out_folder_remove(j.folder);
	dataset_close(j.data);
	picture_free(j.picture);
	buf_done(&j.file.bytes);
	buf_done(&j.pixels);
	if (rank_context_kept_stop())
		raise(rank_context_kept_stop()); /* ends the process, as its handler is gone */
	return rc;
}
