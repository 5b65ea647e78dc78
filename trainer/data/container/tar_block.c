/* tar_block.c: parses and builds the fields of a header. */
#include "trainer/data/container/tar_block.h"

#include <stdio.h>
#include <string.h>

enum { AT_MODE = 100, AT_UID = 108, AT_GID = 116, AT_BYTES = 124, AT_TIME = 136, AT_SUM = 148, AT_TYPE = 156,
       AT_MAGIC = 257, AT_PREFIX = 345 };

/* Parses octal digits up to a space or NUL. False: another character. */
static bool parse_octal_field(const char *text, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	while (i < n && text[i] == ' ')
		i++;
	for (; i < n && text[i] && text[i] != ' '; i++) {
		if (text[i] < '0' || text[i] > '7' || v >> 60)
			return false;
		v = v * 8 + (uint64_t)(text[i] - '0');
	}
	*ret = v;
	return true;
}

/* Parses octal digits, or GNU's big-endian number after a byte 0x80. */
static bool parse_size_field(const char *text, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if ((unsigned char)text[0] != 0x80)
		return parse_octal_field(text, n, ret);
	for (size_t i = 1; i < n; i++) {
		if (v >> 55)
			return false;
		v = v << 8 | (unsigned char)text[i];
	}
	*ret = v;
	return true;
}

/* Sum of the header's bytes, with the checksum field counted as spaces. */
static uint64_t sum_tar_header(const char *block)
{
	uint64_t sum = 0;

	for (int i = 0; i < TAR_BLOCK; i++)
		sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : (unsigned char)block[i];
	return sum;
}

static bool is_zero_block(const char *block)
{
	for (int i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return false;
	return true;
}

static enum tar_kind tar_kind_of_type(char type, const char *name)
{
	switch (type) {
	case '\0': /* v7: a folder's name ends in a slash */
		return *name && name[strlen(name) - 1] == '/' ? TAR_OTHER : TAR_FILE;
	case '0':
	case '7':
		return TAR_FILE;
	case 'x':
		return TAR_PAX;
	case 'L':
		return TAR_LONG_NAME;
	default:
		return TAR_OTHER;
	}
}

void tar_block_parse(const void *block, struct tar_block *ret)
{
	const char *b = block;
	bool prefixed = !memcmp(b + AT_MAGIC, "ustar", 6) && b[AT_PREFIX]; /* GNU's magic continues with a space */
	uint64_t sum;

	*ret = (struct tar_block){ .kind = TAR_DAMAGED };
	if (is_zero_block(b)) {
		ret->kind = TAR_END;
		return;
	}
	if (!parse_octal_field(b + AT_SUM, 8, &sum) || sum != sum_tar_header(b) ||
	    !parse_size_field(b + AT_BYTES, 12, &ret->bytes) || ret->bytes > TAR_BYTES_MAX)
		return;
	snprintf(ret->name, sizeof(ret->name), "%.155s%s%.100s", prefixed ? b + AT_PREFIX : "", prefixed ? "/" : "", b);
	ret->kind = tar_kind_of_type(b[AT_TYPE], ret->name);
	if (strchr("12345", b[AT_TYPE]) && b[AT_TYPE])
		ret->bytes = 0; /* links, devices and folders have no content, whatever the size field */
}

void tar_block_make(void *block, const char *name, uint64_t bytes)
{
	char *b = block;

	memset(b, 0, TAR_BLOCK);
	snprintf(b, 100, "%.99s", name);
	memcpy(b + AT_MODE, "0000644", 7);
	memcpy(b + AT_UID, "0000000", 7);
	memcpy(b + AT_GID, "0000000", 7);
	if (bytes >> 33) {
		b[AT_BYTES] = (char)0x80;
		for (int i = 0; i < 8; i++)
			b[AT_BYTES + 11 - i] = (char)(bytes >> 8 * i);
	} else {
		snprintf(b + AT_BYTES, 12, "%011llo", (unsigned long long)bytes);
	}
	memcpy(b + AT_TIME, "00000000000", 11);
	b[AT_TYPE] = '0';
	memcpy(b + AT_MAGIC, "ustar\00000", 8);
	snprintf(b + AT_SUM, 8, "%06o", (unsigned)sum_tar_header(b));
	b[AT_SUM + 7] = ' ';
}
