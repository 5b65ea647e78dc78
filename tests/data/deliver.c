/* SPDX-License-Identifier: Apache-2.0 */
/* deliver.c: prints what loaders deliver, for tests in Python:
 *   deliver SET [name=value]…
 * ranks, workers, batch (global), epochs, seed, first (step), side, val (1: that split), shuffle (sampler_order),
 * window, val_path, image_field, label_field, val_share, max_unreadable, timeout, read_ahead, cache, cache_bytes,
 * peer (the port of another node that shares its cache), job_key,
 * memory_bytes, plain (1: no augmentation), list (1: one line per sample with its label and the SHA-256 of its input),
 * names (1: the names of classes, after "broken"); for tokens: seq_len, pack (1: complete documents), mix (weights),
 * epoch_samples, text (1: one line per sample with tokens and targets).
 * Prints "samples N" and the SHA-256 over inputs and labels of all steps in the order of ranks, then "broken N" and the
 * notices. Exits with 1 and the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/base/sha256.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/sampler.h"
#include "trainer/data/store/peers.h"

#define RANKS_MAX 64

static char **words;

static const char *text(const char *name)
{
	size_t n = strlen(name);

	for (char **w = words; *w; w++)
		if (!strncmp(*w, name, n) && (*w)[n] == '=')
			return *w + n + 1;
	return NULL;
}

static double number(const char *name, double fallback)
{
	const char *t = text(name);

	return t ? strtod(t, NULL) : fallback;
}

static int end(const struct err *e)
{
	fprintf(stderr, "%s\n", e->text);
	return 1;
}

static struct loader_opts opts_of(const struct dataset *d)
{
	enum split split = number("val", 0) ? SPLIT_VAL : SPLIT_TRAIN;
	enum sampler_order order = (enum sampler_order)number("shuffle", SAMPLER_TABLE);
	bool mixed = d->part && split == SPLIT_TRAIN;
	bool plain = number("plain", 0) || split == SPLIT_VAL;

	return (struct loader_opts){ .dataset = d,
				     .split = split,
				     .sampler = { .n_samples = mixed ? d->epoch_samples : d->n_samples[split],
						  .part = mixed ? d->part : NULL,
						  .n_parts = d->n_parts,
						  .global_batch = (int64_t)number("batch", 8),
						  .world = (int)number("ranks", 1),
						  .seed = (uint64_t)number("seed", 0),
						  .order = mixed ? SAMPLER_MIX : order,
						  .window = d->page_window.lanes ? d->page_window.samples :
										   (int64_t)number("window", 10000),
						  .lanes = d->page_window.lanes,
						  .piece = d->piece[split],
						  .n_pieces = d->n_pieces[split] },
				     .dtype = DTYPE_F32,
				     .workers = (int)number("workers", 0),
				     .augment = plain ? 0 : d->ops->hand_new ? DATASET_RANDOM_BOX | DATASET_FLIP : 0,
				     .first_step = (int64_t)number("first", 0),
				     .epochs = (int64_t)number("epochs", 1) };
}

/* "sample N: tokens | targets" */
static void print_tokens(const int32_t *tokens, const int32_t *targets, int64_t n)
{
	static int64_t number;

	printf("sample %lld:", (long long)number++);
	for (int64_t i = 0; i < n; i++)
		printf(" %d", tokens[i]);
	printf(" |");
	for (int64_t i = 0; i < n; i++)
		printf(" %d", targets[i]);
	printf("\n");
}

static void take(const struct dataset *d, const struct loader_batch *b, size_t bytes, struct sha256 *all)
{
	int64_t each = d->kind == SAMPLE_TOKENS ? d->seq_len : 1;
	char hex[65];

	for (int64_t i = 0; i < b->count; i++) {
		const char *input = (const char *)b->inputs + (size_t)i * bytes;

		sha256_add(all, input, bytes);
		sha256_add(all, &b->targets[i * each], sizeof(b->targets[0]) * (size_t)each);
		if (number("text", 0))
			print_tokens((const int32_t *)(const void *)input, &b->targets[i * each], each);
		if (!number("list", 0))
			continue;
		sha256_hex(input, bytes, hex);
		printf("%d %s\n", b->targets[i * each], hex);
	}
}

static int deliver(const struct dataset *d, struct err *err)
{
	struct loader_opts o = opts_of(d);
	size_t bytes = d->kind == SAMPLE_TOKENS
			       ? (size_t)d->seq_len * sizeof(int32_t)
			       : (size_t)d->height * (size_t)d->width * (size_t)d->channels * sizeof(float);
	struct loader *l[RANKS_MAX];
	struct sha256 all;
	char hex[65];
	int64_t n = 0;
	int rc = 0, world = o.sampler.world, more = 1;

	sha256_init(&all);
	for (o.rank = 0; o.rank < world; o.rank++)
		if (loader_open(&l[o.rank], &o, err))
			return err->code;
	while (more > 0)
		for (int r = 0; r < world && more >= 0; r++) {
			struct loader_batch b;

			more = loader_next(l[r], &b, err);
			if (more < 0)
				rc = err->code;
			if (more <= 0)
				continue;
			n += b.count;
			take(d, &b, bytes, &all);
			loader_release(l[r], &b);
		}
	for (int r = 0; r < world; r++)
		loader_close(l[r]);
	sha256_end(&all, hex);
	if (!rc)
		printf("samples %lld\n%s\n", (long long)n, hex);
	return rc;
}

/* The job of this process and another node, whose id is zeros; this one's is 0xff… */
static struct peers *open_peers(void)
{
	struct peers_node node[2] = { { .address = "127.0.0.1" }, { .address = "127.0.0.1" } };

	memset(node[0].id, 0xff, sizeof(node[0].id));
	node[1].port = (int32_t)number("peer", 0);
	if (!node[1].port)
		return NULL;
	return peers_open(&(struct peers_opts){
		.node = node, .n = 2, .id = node[0].id, .key = text("job_key") ? text("job_key") : "" });
}

static void print_traffic(const struct dataset *d)
{
	struct dataset_traffic t = dataset_traffic(d);

	printf("peer_bytes %llu\npeer_failures %llu\nremote_bytes %llu\n", (unsigned long long)t.peer_bytes,
	       (unsigned long long)t.peer_failures, (unsigned long long)t.remote_bytes);
}

int main(int argc, char *argv[])
{
	struct err err = ERR_INIT;
	struct dataset *d;
	struct peers *peers = NULL;
	uint32_t mix[MIX_PARTS_MAX];
	char line[512];
	struct buf doubts;
	int rc, n_mix = 0;

	if (argc < 2)
		return 2;
	words = argv + 2;
	if (text("mix") && mix_parse(mix, &n_mix, "mix", text("mix"), &err))
		return end(&err);
	peers = open_peers();
	rc = formats_open(&d,
			  &(struct dataset_opts){ .path = argv[1],
						  .image_size = (int)number("side", 24),
						  .any_kind = true,
						  .seq_len = (int64_t)number("seq_len", 16),
						  .pack_documents = number("pack", 0) > 0,
						  .mix = n_mix ? mix : NULL,
						  .n_mix = n_mix,
						  .epoch_samples = (int64_t)number("epoch_samples", 0),
						  .val_share = number("val_share", 0),
						  .max_unreadable = number("max_unreadable", 0.01),
						  .val_path = text("val_path"),
						  .data_timeout_s = number("timeout", 0),
						  .read_ahead = (int)number("read_ahead", 0),
						  .cache = text("cache"),
						  .cache_bytes = (uint64_t)number("cache_bytes", 0),
						  .peers = peers,
						  .memory_bytes = (uint64_t)number("memory_bytes", 0),
						  .image_field = text("image_field"),
						  .label_field = text("label_field") },
			  &err);
	if (rc)
		return end(&err);
	rc = deliver(d, &err);
	printf("broken %lld\n", (long long)dataset_broken(d));
	for (int i = 0; number("names", 0) && i < d->n_class_names; i++)
		printf("class %d %s\n", i, d->class_names[i]);
	if (peers)
		print_traffic(d);
	while (dataset_notice(d, line, sizeof(line)))
		printf("%s\n", line);
	buf_init(&doubts, 4096);
	dataset_say_doubts(d, &doubts);
	if (doubts.len)
		printf("%s\n", doubts.data);
	buf_done(&doubts);
	dataset_close(d);
	peers_close(peers);
	return rc ? end(&err) : 0;
}
