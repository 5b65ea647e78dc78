/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c: `dptrain merge`: adds a LoRA adapter to the weights that it belongs to, W + factor B A for each layer, and
 * writes their folder. Tensors are computed and written one by one. */
#include "trainer/tools/subcommands.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/file.h"
#include "tracker/mem/mem.h"
#include "trainer/launch/rank_context.h"
#include "trainer/ops/cast/float16.h"
#include "trainer/state/initial.h"
#include "trainer/tools/out_folder.h"
#include "trainer/weights/checkpoint.h"

struct merge_pair { /* of a layer; NULL: it has none */
	const struct st_tensor *down, *up;
};

struct merging {
	const struct decoder_config *d;
	struct safetensors *base, *adapter;
	struct merge_pair *pairs; /* by tensor of the base */
	size_t layers;		  /* with a pair */
	double *row, *delta, *downs;
	void *out; /* a merged tensor */
};

/* Finds the adapter of a tensor "<layer>.weight". Returns false if the layer is a target whose adapter is missing or of
 * another shape; name: for messages. */
static bool find_merge_pair(const struct merging *m, const struct st_tensor *w, struct merge_pair *ret, char name[300])
{
	const size_t stem = strlen(w->name) > 7 ? strlen(w->name) - 7 : 0;
	bool target = false;

	for (int i = 0; decoder_targets[i]; i++) {
		const size_t n = strlen(decoder_targets[i]);

		target |= m->d->lora.targets & 1u << i && stem > n && w->ndim == 2 && w->name[stem - n - 1] == '.' &&
			  !strcmp(w->name + stem, ".weight") && !strncmp(w->name + stem - n, decoder_targets[i], n);
	}
	if (!target)
		return true;
	snprintf(name, 300, DECODER_ADAPTER "%.*s.lora_B.weight", (int)stem, w->name);
	ret->up = safetensors_find(m->adapter, name);
	if (!ret->up || ret->up->ndim != 2 || ret->up->dim[0] != w->dim[0] || ret->up->dim[1] != m->d->lora.rank)
		return false;
	snprintf(name, 300, DECODER_ADAPTER "%.*s.lora_A.weight", (int)stem, w->name);
	ret->down = safetensors_find(m->adapter, name);
	return ret->down && ret->down->ndim == 2 && ret->down->dim[0] == m->d->lora.rank &&
	       ret->down->dim[1] == w->dim[1];
}

/* Pairs all layers, and reserves memory for the largest of them. */
static int pair_layers(struct merging *m, struct err *err)
{
	const size_t n = safetensors_count(m->base);
	int64_t widest = 1, most = 1;
	char name[300];

	m->pairs = mem_array(n + 1, sizeof(*m->pairs));
	for (size_t i = 0; i < n; i++) {
		const struct st_tensor *w = safetensors_at(m->base, i);

		if (!find_merge_pair(m, w, &m->pairs[i], name))
			return err_set(err, ERR_USAGE, "%.200s: %.200s is missing or does not fit %.200s",
				       safetensors_path(m->adapter), name, safetensors_path(m->base));
		if (!m->pairs[i].up)
			continue;
		m->layers++;
		widest = w->dim[1] > widest ? w->dim[1] : widest;
		most = w->count > most ? w->count : most;
	}
	if (safetensors_count(m->adapter) != 2 * m->layers || !m->layers)
		return err_set(err, ERR_USAGE, "%.200s: has %zu tensors, but %zu layers of %.200s have an adapter",
			       safetensors_path(m->adapter), safetensors_count(m->adapter), m->layers,
			       safetensors_path(m->base));
	m->row = mem_array((size_t)widest, sizeof(*m->row));
	m->delta = mem_array((size_t)widest, sizeof(*m->delta));
	m->downs = mem_array((size_t)(widest * m->d->lora.rank), sizeof(*m->downs));
	m->out = mem_array((size_t)most, sizeof(double));
	return 0;
}

static bool is_float_file(const struct st_tensor *t, enum dtype *ret)
{
	*ret = t->dtype == ST_F64    ? DTYPE_F64
	       : t->dtype == ST_F32  ? DTYPE_F32
	       : t->dtype == ST_BF16 ? DTYPE_BF16
				     : DTYPE_F16;
	return t->dtype == ST_F16 || *ret != DTYPE_F16;
}

/* Computes a merged tensor, each element rounded once. */
static int merge_layer(struct merging *m, const struct st_tensor *w, const struct merge_pair *p, struct err *err)
{
	const int64_t n = w->dim[1], rank = m->d->lora.rank;
	const double factor = decoder_lora_factor(&m->d->lora);
	enum dtype type;

	if (!is_float_file(w, &type))
		return err_set(err, ERR_USAGE, "%.200s: %.200s is not of a float type", safetensors_path(m->base),
			       w->name);
	safetensors_f64(p->down, 0, rank * n, m->downs);
	for (int64_t k = 0; k < w->dim[0]; k++) {
		safetensors_f64(w, k * n, n, m->row);
		memset(m->delta, 0, (size_t)n * sizeof(*m->delta));
		for (int64_t r = 0; r < rank; r++) {
			const double *a = m->downs + r * n;
			double b;

			safetensors_f64(p->up, k * rank + r, 1, &b);
			for (int64_t i = 0; i < n; i++)
				m->delta[i] += b * a[i];
		}
		for (int64_t i = 0; i < n; i++)
			float_put(m->out, type, k * n + i, m->row[i] + factor * m->delta[i]);
	}
	return 0;
}

static int fetch_merged(void *user, size_t i, const void **ret, struct err *err)
{
	struct merging *m = user;
	const struct st_tensor *w = safetensors_at(m->base, i);

	if (rank_context_kept_stop())
		return err_set(err, ERR_CANCELED, "stopped: nothing was written");
	*ret = m->pairs[i].up ? m->out : w->data;
	return m->pairs[i].up ? merge_layer(m, w, &m->pairs[i], err) : 0;
}

/* Writes the weights, and copies what else is in the folder of the base. */
static int write_merged(struct merging *m, const char *adapter, const char *folder, struct err *err)
{
	static const struct st_meta format = { "format", "pt" };
	const size_t n = safetensors_count(m->base);
	struct hf_config config = { .text = m->d->json, .text_bytes = m->d->json_bytes, .folder = m->d->folder };
	struct buf template; /* that the adapter was trained with, if it is not the base's */
	struct st_tensor *all = mem_array(n + 1, sizeof(*all));
	char path[OUT_FOLDER_BYTES + 40];
	int rc = 0;

	buf_init(&template, SIZE_MAX);
	if (file_join(path, sizeof(path), adapter, HF_CHAT_TEMPLATE) && !access(path, F_OK)) {
		rc = file_load(&template, path, err);
		config.chat_template = template.data ? template.data : "";
	}
	for (size_t i = 0; i < n; i++)
		all[i] = *safetensors_at(m->base, i);
	snprintf(path, sizeof(path), "%s/" CHECKPOINT_MODEL, folder);
	rc = rc ? rc
		: safetensors_write(&(struct st_write_opts){ .path = path,
							     .tensors = all,
							     .n_tensors = n,
							     .meta = &format,
							     .n_meta = 1,
							     .fetch = fetch_merged,
							     .user = m },
				    err);
	free(all);
	rc = rc ? rc : hf_config_write(&config, path, err);
	buf_done(&template);
	return rc;
}

static int open_merging(struct merging *m, const struct run_config *cfg, struct err *err)
{
	char path[4200], hash[65];
	int rc = adapter_hash_base(hash, cfg->init_from, err);

	if (!rc)
		rc = adapter_check_base(cfg->adapter, hash, cfg->init_from, err);
	if (!rc && !file_join(path, sizeof(path), cfg->adapter, ADAPTER_MODEL))
		rc = err_set(err, ERR_USAGE, "%.100s…: the path is too long", cfg->adapter);
	if (!rc)
		rc = safetensors_open(&m->base, cfg->init_from, err);
	if (!rc)
		rc = safetensors_open(&m->adapter, path, err);
	return rc ? rc : pair_layers(m, err);
}

int merge_main(struct run_config *cfg, struct buf *out, struct err *err)
{
	struct merging m = { .d = NULL };
	char folder[OUT_FOLDER_BYTES] = "";
	int rc;

	if (!cfg->out || (!cfg->init_from && !cfg->adapter))
		return err_set(err, ERR_USAGE, "dptrain merge needs %s",
			       cfg->out ? "--init-from BASE --adapter DIR" : "--out DIR");
	rc = initial_begin(cfg, err);
	if (!rc && !cfg->adapter)
		rc = err_set(err, ERR_USAGE, "--init-from %.300s: is no run with LoRA: add --adapter DIR",
			     cfg->init_from);
	m.d = cfg->decoder;
	rank_context_keep_stop();
	if (!rc)
		rc = open_merging(&m, cfg, err);
	if (!rc)
		rc = out_folder_make(folder, cfg->out, "the merged model", err);
	if (!rc)
		rc = write_merged(&m, cfg->adapter, folder, err);
	if (!rc)
		rc = out_folder_publish(folder, cfg->out, err);
	if (rc)
		out_folder_remove(folder);
	else
		buf_addf(out, "%s: %zu of %zu tensors merged\n", cfg->out, m.layers, safetensors_count(m.base));
	safetensors_close(m.base);
	safetensors_close(m.adapter);
	free(m.pairs);
	free(m.row);
	free(m.delta);
	free(m.downs);
	free(m.out);
	if (rank_context_kept_stop())
		raise(rank_context_kept_stop()); /* ends the process, as its handler is gone */
	return rc;
}
