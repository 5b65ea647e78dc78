/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.c: dispatches to the format's operations, checks what every read must return, and hashes the content of a
 * split. Knows no format by name. */
#include "trainer/data/class_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tracker/mem/mem.h"
#include "trainer/data/pictures/pixels.h"

#define NAMES_SAID 6 /* names of classes in a line */
#define ACCOUNT_BYTES 32768
#define FAR 8 /* times the others' range: a label that is probably wrong */

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
	if (!d)
		return;
	free(d->relabel);
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
	if (!rc && *r->label >= 0 && *r->label < d->n_relabel)
		*r->label = d->relabel[*r->label];
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

/* ---- the account ---- */

static void replace_control_bytes(struct buf *out, size_t from)
{
	for (size_t i = from; i < out->len; i++)
		if ((unsigned char)out->data[i] < ' ' || out->data[i] == 0x7f)
			out->data[i] = '?';
}

void dataset_end_line(struct buf *out, size_t from)
{
	replace_control_bytes(out, from);
	if (out->len > from)
		buf_addc(out, '\n');
}

static void say_classes(const struct dataset *d, struct buf *out)
{
	const int n = d->relabel ? d->n_class_names : d->classes;

	buf_addf(out, "%d class%s", n, n == 1 ? "" : "es");
	for (int i = 0; i < d->n_class_names && i < NAMES_SAID; i++)
		buf_addf(out, "%s%.60s", i ? ", " : ": ", d->class_names[i]);
	if (d->n_class_names > NAMES_SAID)
		buf_adds(out, ", …");
}

void dataset_say_used(const struct dataset *d, struct buf *out)
{
	const int64_t n = data_account_used(&d->account);
	const size_t from = out->len;

	if (n) {
		buf_addf(out, "%lld file%s (", (long long)n, n == 1 ? "" : "s");
		data_account_say_used(&d->account, out);
		buf_addc(out, ')');
	}
	if (n && d->ops->say) {
		buf_adds(out, ": ");
		d->ops->say(d, out);
	}
	if (n && d->kind == SAMPLE_IMAGE)
		buf_adds(out, ", ");
	if (d->kind == SAMPLE_IMAGE)
		say_classes(d, out);
	replace_control_bytes(out, from);
}

/* seen: a bit for each class, set if its label occurs. The largest one does. */
static void say_label_gaps(const struct dataset *d, const uint8_t *seen, struct buf *out)
{
	const int classes = d->classes, last = classes - 1;
	int empty = 0, first = -1, below = -1;

	for (int i = 0; i < classes; i++) {
		bool there = seen[i / 8] >> i % 8 & 1;

		if (!there && first < 0)
			first = i;
		empty += !there;
		if (there && i < last)
			below = i;
	}
	if (!empty)
		return;
	buf_addf(out, "%.200s: ", d->path);
	if (below >= 0 && last > FAR * (below + 1))
		buf_addf(out,
			 "label %d is far above the others, which end at %d: the model gets %d classes: correct it, "
			 "or state --classes",
			 last, below, classes);
	else if (empty == 1 && !first)
		buf_adds(out, "labels begin at 1 and are used unchanged: class 0 is empty");
	else
		buf_addf(out,
			 "%d of the %d labels from 0 to %d do not occur (the first is %d): these classes are empty",
			 empty, classes, last, first);
}

void dataset_say_doubts(const struct dataset *d, struct buf *out)
{
	const bool counted = d->kind == SAMPLE_IMAGE && d->ops->label && !d->classes_stated && !d->n_class_names;
	uint8_t *seen = counted && d->classes > 1 ? mem_zalloc((size_t)d->classes / 8 + 1) : NULL;

	if (d->kind == SAMPLE_IMAGE && d->classes == 1)
		buf_addf(out, "%.200s: all samples have one class%s%.60s: there is nothing to learn", d->path,
			 d->n_class_names ? ", " : "", d->n_class_names ? d->class_names[0] : "");
	for (int s = 0; seen && s < SPLIT_COUNT; s++)
		for (int64_t i = 0; i < d->n_samples[s]; i++) {
			const int32_t label = d->ops->label(d, (enum split)s, i);

			seen[label / 8] |= (uint8_t)(1 << label % 8);
		}
	if (seen)
		say_label_gaps(d, seen, out);
	free(seen);
}

void dataset_tell(struct dataset *d, int most, void (*line)(void *user, bool warns, const char *text), void *user)
{
	const struct data_account *a = &d->account;
	char notice[512];
	struct buf b;

	buf_init(&b, ACCOUNT_BYTES);
	if (data_account_used(a)) {
		dataset_say_used(d, &b);
		line(user, false, b.data);
	}
	if (data_account_left(a, DATA_ACCOUNT_FILES) || data_account_left(a, DATA_ACCOUNT_SAMPLES)) {
		buf_reset(&b);
		buf_addf(&b, "%.200s: ", d->path);
		data_account_say_left(a, most, &b);
		replace_control_bytes(&b, 0);
		line(user, true, b.data);
	}
	buf_reset(&b);
	dataset_say_doubts(d, &b);
	replace_control_bytes(&b, 0);
	if (b.len)
		line(user, true, b.data);
	buf_done(&b);
	while (dataset_notice(d, notice, sizeof(notice)))
		line(user, true, notice);
}

static json_t *list_used_kinds(const struct data_account *a)
{
	json_t *files = json_object();

	for (int i = 0; i < a->n_used; i++)
		json_object_set_new(files, a->used[i].name, json_integer(a->used[i].n));
	return files;
}

static json_t *list_left_out(const struct data_account *a)
{
	json_t *list = json_array();

	for (int i = 0; i < a->n_left; i++) {
		const struct data_account_reason *r = &a->left[i];

		json_array_append_new(list, json_pack("{s:s, s:I, s:o, s:o}", "unit",
						      r->unit == DATA_ACCOUNT_FILES ? "files" : "samples", "count",
						      (json_int_t)r->n, "why", class_names_json_text(r->why), "example",
						      class_names_json_text(r->example)));
	}
	return list;
}

int dataset_account_json(const struct dataset *d, int names, struct buf *out, struct err *err)
{
	const struct data_account *a = &d->account;
	struct buf doubts;
	json_t *o =
		json_pack("{s:o, s:s, s:s, s:o, s:{s:I, s:I}, s:i, s:o, s:o, s:I, s:I, s:I}", "path",
			  class_names_json_text(d->path), "format", dataset_facts(d, SPLIT_TRAIN).format, "kind",
			  sample_kind_name(d->kind), "files", list_used_kinds(a), "samples", "train",
			  (json_int_t)d->n_samples[SPLIT_TRAIN], "val", (json_int_t)d->n_samples[SPLIT_VAL], "classes",
			  d->classes, "class_names", class_names_json(d, names), "left_out", list_left_out(a),
			  "files_left_out", (json_int_t)data_account_left(a, DATA_ACCOUNT_FILES), "samples_left_out",
			  (json_int_t)data_account_left(a, DATA_ACCOUNT_SAMPLES), "hidden", (json_int_t)a->hidden);
	char *text;

	buf_init(&doubts, 4096);
	dataset_say_doubts(d, &doubts);
	if (doubts.len)
		json_object_set_new(o, "doubts", class_names_json_text(doubts.data));
	if (d->columns && *d->columns)
		json_object_set_new(o, "columns", class_names_json_text(d->columns));
	if (d->ops->say) {
		buf_reset(&doubts);
		d->ops->say(d, &doubts);
		json_object_set_new(o, "made_of", class_names_json_text(doubts.data));
	}
	buf_done(&doubts);
	text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	if (text)
		buf_adds(out, text);
	free(text);
	return text && !buf_failed(out) ? 0 : err_set(err, ERR_NOMEM, "out of memory: the account of %.200s", d->path);
}

/* ---- hashes ---- */

#define FILE_BYTES_MAX ((size_t)1 << 30)

/* Hashes one sample and its label. The length comes first, so that different sequences of samples never hash the
 * same bytes. */
static int hash_sample(const struct dataset *d, const struct dataset_read *r, struct dataset_file *file,
		       struct sha256 *to, struct err *err)
{
	const void *bytes = d->kind == SAMPLE_TOKENS ? (void *)r->tokens : r->pixels;
	uint64_t n = d->kind == SAMPLE_TOKENS ? (uint64_t)d->seq_len * sizeof(int32_t)
					      : (uint64_t)pixels_count(d) * dtype_bytes(d->dtype);
	int32_t label = *r->label;
	int rc = d->ops->file ? d->ops->file(d, r, file, err) : dataset_read(d, r, err);

	if (rc)
		return rc;
	if (d->ops->file) {
		bytes = file->bytes.data;
		n = file->bytes.len;
		label = file->label;
	} else if (d->kind == SAMPLE_IMAGE) {
		label = *r->label;
	}
	sha256_add(to, &n, sizeof(n));
	sha256_add(to, bytes ? bytes : "", (size_t)n);
	sha256_add(to, &label, sizeof(label));
	return 0;
}

static int hash_all_samples(const struct dataset *d, enum split split, struct sha256 *to, struct err *err)
{
	const size_t tokens = d->kind == SAMPLE_TOKENS ? (size_t)d->seq_len : 0;
	int32_t label = 0;
	struct dataset_read r = { .split = split,
				  .label = &label,
				  .pixels = mem_alloc(tokens ? 0 : pixels_count(d) * dtype_bytes(d->dtype)),
				  .tokens = mem_alloc(tokens * sizeof(*r.tokens)),
				  .targets = mem_alloc(tokens * sizeof(*r.targets)) };
	struct dataset_file file = { .bytes.max = FILE_BYTES_MAX };
	int rc = 0;

	for (r.index = 0; !rc && r.index < d->n_samples[split]; r.index++)
		rc = hash_sample(d, &r, &file, to, err);
	free(r.pixels);
	free(r.tokens);
	free(r.targets);
	buf_done(&file.bytes);
	return rc;
}

int dataset_digest(const struct dataset *d, enum split split, bool whole, char ret[65], struct err *err)
{
	struct sha256 sum;
	char head[64];
	int rc = 0;

	sha256_init(&sum);
	snprintf(head, sizeof(head), "%s %lld\n", split_name(split), (long long)d->n_samples[split]);
	sha256_add(&sum, head, strlen(head));
	if (whole)
		rc = hash_all_samples(d, split, &sum, err);
	else if (d->ops->sum)
		d->ops->sum(d, split, &sum);
	else
		sha256_add(&sum, d->hash, strlen(d->hash));
	sha256_end(&sum, ret);
	return rc;
}
