/* SPDX-License-Identifier: Apache-2.0 */
/* loader_rate.c: images per second that the loader delivers from a folder of JPEGs as normalised f32: random crop,
 * flip. usage: loader_rate FOLDER WORKERS EPOCHS SIDE. Prints one line per epoch: images/s of wall clock, images/s per
 * busy core, resident bytes. Part of tests/bench/loader. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tracker/base/clock.h"
#include "trainer/data/formats/formats.h"
#include "trainer/data/loader/loader.h"

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) *
		1e-6;
}

static long resident_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static int epoch(struct loader *l, int64_t n, struct err *err)
{
	double wall = clock_mono_s(), cpu = cpu_s();
	int64_t done = 0;

	while (done < n) {
		struct loader_batch b;
		int rc = loader_next(l, &b, err);

		if (rc != 1)
			return rc ? rc : -1;
		done += b.count;
		loader_release(l, &b);
	}
	printf("%.1f %.1f %ld\n", (double)n / (clock_mono_s() - wall), (double)n / (cpu_s() - cpu), resident_bytes());
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct dataset *d = NULL;
	struct loader *l = NULL;
	int side = argc > 4 ? (int)strtol(argv[4], NULL, 10) : 224, rc;
	long epochs = argc > 3 ? strtol(argv[3], NULL, 10) : 1;

	if (argc < 3) {
		fprintf(stderr, "usage: loader_rate FOLDER WORKERS [EPOCHS] [SIDE]\n");
		return 2;
	}
	rc = formats_open(&d, &(struct dataset_opts){ .path = argv[1], .image_size = side }, &err);
	if (!rc)
		rc = loader_open(&l,
				 &(struct loader_opts){ .dataset = d,
							.split = SPLIT_TRAIN,
							.sampler = { .n_samples = d->n_samples[SPLIT_TRAIN],
								     .global_batch = 32,
								     .micro = 32,
								     .world = 1,
								     .order = SAMPLER_TABLE },
							.dtype = DTYPE_F32,
							.workers = (int)strtol(argv[2], NULL, 10),
							.augment = DATASET_RANDOM_BOX | DATASET_FLIP },
				 &err);
	for (long i = 0; !rc && i < epochs; i++)
		rc = epoch(l, d->n_samples[SPLIT_TRAIN], &err);
	if (rc)
		fprintf(stderr, "loader_rate: %s\n", err.text);
	loader_close(l);
	dataset_close(d);
	return rc ? 1 : 0;
}
