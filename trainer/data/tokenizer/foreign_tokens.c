/* SPDX-License-Identifier: Apache-2.0 */
/* foreign_tokens.c: layouts of token files of other programs. What a file does not state is as its program has it:
 * GPT-2's vocabulary, and nanoGPT's meta.pkl in the same folder for a smaller one. */
#include "trainer/data/tokenizer/foreign_tokens.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/little.h"

#define LLMC_HEADER 1024
#define GPT2_VOCAB 50257
#define CIFAR_RECORD 3074 /* CIFAR-100's train.bin has no header either */
#define META "meta.pkl"
#define NUMPY_MAGIC "\x93NUMPY"

static const struct {
	uint32_t magic, version;
	int width;
	int64_t vocab;
} llmc[] = { { 20240520, 1, 2, GPT2_VOCAB }, { 20240801, 7, 4, 128256 } };

static void set_tokens(struct token_file *f, size_t begin, int width, int64_t vocab)
{
	f->tokens = f->map.bytes + begin;
	f->width = width;
	f->vocab = vocab;
	f->count = (int64_t)((f->map.n - begin) / (size_t)width);
	f->separator = -1;
}

static bool parse_llmc(struct token_file *f)
{
	const unsigned char *h = f->map.bytes;

	for (size_t i = 0; f->map.n >= LLMC_HEADER && i < sizeof(llmc) / sizeof(*llmc); i++) {
		if (little_get_u32(h) != llmc[i].magic || little_get_u32(h + 4) != llmc[i].version)
			continue;
		set_tokens(f, LLMC_HEADER, llmc[i].width, llmc[i].vocab);
		if (little_get_u32(h + 8) > f->count)
			return false;
		f->count = little_get_u32(h + 8);
		return true;
	}
	return false;
}

static bool parse_numpy(struct token_file *f)
{
	const unsigned char *h = f->map.bytes;
	size_t n = f->map.n >= 10 ? 10 + (h[8] | (size_t)h[9] << 8) : SIZE_MAX;
	char text[256];

	if (n > f->map.n || n - 10 >= sizeof(text) || memcmp(h, NUMPY_MAGIC "\1", 7))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)(n - 10), (const char *)h + 10);
	if (!strstr(text, "'descr': '<u2'") || !strstr(text, ",)"))
		return false;
	set_tokens(f, n, 2, GPT2_VOCAB);
	return true;
}

/* Finds the number after the key vocab_size in nanoGPT's pickled dictionary; 0: nowhere. */
static int64_t find_vocabulary(const char *folder)
{
	static const char key[] = "vocab_size";
	const unsigned char *at = NULL;
	struct file_map m = { NULL, 0 };
	char path[PATH_MAX];
	int64_t found = 0;

	snprintf(path, sizeof(path), "%.4000s/" META, folder);
	if (!file_map_open(&m, path, NULL))
		at = memmem(m.bytes, m.n, key, sizeof(key) - 1);
	if (at && (size_t)(m.bytes + m.n - at) > sizeof(key) + 8) {
		at += sizeof(key) - 1;
		at += *at == 0x94 ? 1 : *at == 'q' ? 2 : 0; /* the pickle's memo */
		found = *at == 'K'   ? at[1]
			: *at == 'M' ? at[1] | at[2] << 8
			: *at == 'J' ? (int64_t)little_get_u32(at + 1)
				     : 0;
	}
	file_map_close(&m);
	return found;
}

static bool has_cifar_records(const struct file_map *m)
{
	bool good = m->n && m->n % CIFAR_RECORD == 0;

	for (size_t i = 0; good && i < m->n; i += CIFAR_RECORD)
		good = m->bytes[i] < 20 && m->bytes[i + 1] < 100;
	return good;
}

static bool has_file(const char *folder, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.3800s/%.200s", folder, name);
	return !access(path, F_OK);
}

static bool parse_nanogpt(struct token_file *f, const char *folder, const char *name)
{
	const bool other = has_file(folder, "test.bin") || (!has_file(folder, "val.bin") && has_cifar_records(&f->map));
	int64_t vocab;

	if ((strcmp(name, "train.bin") && strcmp(name, "val.bin")) || other || f->map.n < 4 || f->map.n % 2)
		return false;
	vocab = find_vocabulary(folder);
	set_tokens(f, 0, 2, vocab ? vocab : GPT2_VOCAB);
	return true;
}

bool foreign_tokens_parse(struct token_file *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return parse_llmc(f) || parse_numpy(f) || parse_nanogpt(f, folder, slash ? slash + 1 : path);
}

/* Returns true if the name has the word, and ends like such files. */
static bool names_split(const char *file, const char *split)
{
	const size_t n = strlen(file), word = strlen(split);
	const char *at = file;

	if (n < 4 || (strcmp(file + n - 4, ".bin") && strcmp(file + n - 4, ".npy")))
		return false;
	while ((at = strstr(at, split)) &&
	       ((at > file && isalpha((unsigned char)at[-1])) || isalpha((unsigned char)at[word])))
		at++;
	return at != NULL;
}

bool foreign_tokens_probe(const char *folder, const char *file, const char *split)
{
	struct token_file f = { .count = 0 };
	char path[PATH_MAX];
	bool found;

	snprintf(path, sizeof(path), "%.3800s/%.255s", folder, file);
	found = names_split(file, split) && !file_map_open(&f.map, path, NULL) && foreign_tokens_parse(&f, path);
	file_map_close(&f.map);
	return found;
}
