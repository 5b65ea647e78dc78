/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c: the input as an image file: refused with a message, or decoded to pixels, for any part of the picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/data/pictures/picture.h"

enum { SIDE = 24, PIXELS_MAX = 1 << 20 }; /* larger pictures only take longer */

static struct picture *decoder;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	decoder = picture_new();
	return 0;
}

static void look(struct picture_view v)
{
	uint8_t pixels[SIDE * SIDE * 3 + 1];
	struct err err = ERR_INIT;
	int rc;

	pixels[sizeof(pixels) - 1] = 0xa5;
	v.out_width = v.out_height = SIDE;
	rc = picture_render(decoder, &v, pixels, &err);
	FUZZ_HOLDS(!rc || (rc == ERR_CORRUPT && err.text[0]));
	FUZZ_HOLDS(pixels[sizeof(pixels) - 1] == 0xa5);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct picture_size size;
	struct err err = ERR_INIT;
	int rc = picture_load_memory(decoder, &(struct picture_input){ "input", bytes, n }, &size, &err);

	FUZZ_HOLDS(!rc || ((rc == ERR_CORRUPT || rc == ERR_USAGE) && err.text[0])); /* ERR_USAGE: Git LFS's pointer */
	if (rc || (int64_t)size.width * size.height > PIXELS_MAX)
		return 0;
	look((struct picture_view){ .width = size.width, .height = size.height, .cut = true });
	look((struct picture_view){ .x = size.width / 2, .y = size.height / 2, .width = (size.width + 1) / 2,
				    .height = (size.height + 1) / 2, .cut = true, .flip = true });
	look((struct picture_view){ .x = size.width * 0.1, .y = size.height * 0.3, .width = size.width * 0.5,
				    .height = size.height * 0.25 });
	return 0;
}
