/* SPDX-License-Identifier: Apache-2.0 */
/* job_ring.h: jobs that threads run side by side. The caller fills them, and takes their results in that order. Their
 * number is bounded, and so is the memory of all. */
#ifndef DPT_DATA_JOB_RING_H
#define DPT_DATA_JOB_RING_H

#include "tracker/base/buf.h"
#include "tracker/base/err.h"

struct job_ring;

struct encode_job {			/* empty when it is filled */
	struct buf text, parts, tokens; /* bytes; what the caller notes of each part of them; int32_t */
};

struct job_ring_opts {
	int threads;			/* 0: one per core */
	void *(*open)(const void *user); /* what a thread works with; called in it, as is close */
	void (*close)(void *worker);
	int (*run)(void *user, void *worker, struct encode_job *j, struct err *err); /* in a thread */
	int (*take)(void *user, const struct encode_job *j, struct err *err); /* in the caller's: uses the result */
	void *user;
};

/* Starts the threads. ERR_NOMEM: none starts. */
int job_ring_new(struct job_ring **ret, const struct job_ring_opts *o, struct err *err);
void job_ring_free(struct job_ring *r); /* NULL is fine; waiting jobs are dropped */

struct encode_job *job_ring_filling(struct job_ring *r); /* the job that the caller fills */

/* Submits the job being filled, and takes the oldest one, which is filled next. Returns the first error of a job. */
int job_ring_submit(struct job_ring *r, struct err *err);
/* Submits the job being filled, and takes all. */
int job_ring_finish(struct job_ring *r, struct err *err);

#endif
