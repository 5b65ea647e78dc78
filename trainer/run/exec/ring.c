/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c: copies of a run's own values are enqueued on the stream of the runs, so that no other run comes
 * between them. Two events order the batches: a batch is uploaded after the one before was placed, and placed after its
 * upload. */
#include "trainer/run/exec/exec_stream_inside.h"

#include <stdlib.h>
#include <string.h>

#include "tracker/mem/mem.h"

struct sent_values { /* sent in addition to the pages */
	double vote;
	double none[XENT_RESULTS]; /* zeros */
};

struct ring_slot { /* pinned memory except the event; one allocation, which begins with sent */
	struct sent_values *sent;
	struct exec_results *results;
	struct step_page *pages; /* page of each micro-batch slot */
	double *losses;
	struct event_handle *over;
};

struct ring {
	const struct prepared *prepared;
	const struct backend *backend;
	const struct backend_streams *ops;
	void *module;
	struct stream_handle *compute, *feed;
	struct ring_slot slot[RING_SLOTS];
	size_t slot_bytes;
	int micros;		    /* most slots for micro-batches */
	struct step_page *page;	    /* on the device */
	const struct tensor *state; /* state of trainer/ops/step_guard, which has the loss scale; NULL: none */
	struct event_handle *uploaded, *placed; /* the last batch is on the device; it is in its place */
};

/* ---- life ---- */

static size_t pages_bytes(const struct ring *r)
{
	return (size_t)r->micros * sizeof(struct step_page);
}

static int open_ring_slot(struct ring *r, struct ring_slot *s, int64_t losses, struct err *err)
{
	void *memory = NULL;
	int rc = r->backend->alloc(r->module, SPACE_PINNED, r->slot_bytes, &memory, err);

	if (rc)
		return rc;
	s->sent = memory;
	s->results = (struct exec_results *)(s->sent + 1);
	s->pages = (struct step_page *)(s->results + 1);
	s->losses = losses ? (double *)(s->pages + r->micros) : NULL;
	return r->ops->event_new(r->module, false, &s->over, err);
}

static int open_ring_memory(struct ring *r, struct err *err)
{
	const int64_t losses = exec_losses_most(r->prepared);
	void *page = NULL;
	int rc;

	r->slot_bytes = sizeof(struct sent_values) + sizeof(struct exec_results) + pages_bytes(r) +
			(size_t)losses * sizeof(double);
	rc = r->backend->alloc(r->module, SPACE_PRIVATE, pages_bytes(r), &page, err);
	r->page = page;
	for (int i = 0; !rc && i < RING_SLOTS; i++)
		rc = open_ring_slot(r, &r->slot[i], losses, err);
	if (!rc)
		rc = r->ops->stream_new(r->module, &r->feed, err);
	if (!rc)
		rc = r->ops->event_new(r->module, false, &r->uploaded, err);
	return rc ? rc : r->ops->event_new(r->module, false, &r->placed, err);
}

int ring_open(struct ring **ret, const struct prepared *p, struct stream_handle *compute, struct err *err)
{
	struct ring *r = mem_zalloc(sizeof(*r));
	int rc;

	r->prepared = p;
	r->backend = p->opts.backend;
	r->ops = r->backend->streams;
	r->module = p->opts.module;
	r->compute = compute;
	r->state = p->opts.optimizer.scaling ? prepared_own(p, STEP_GUARD_STATE_NAME) : NULL;
	for (int i = 0; i < p->n_programs; i++)
		r->micros = p->program[i]->schedule.slots > r->micros ? p->program[i]->schedule.slots : r->micros;
	rc = open_ring_memory(r, err);
	if (rc)
		ring_close(r);
	else
		*ret = r;
	return rc;
}

void ring_close(struct ring *r)
{
	if (!r)
		return;
	if (r->feed)
		r->ops->stream_free(r->module, r->feed);
	for (int i = 0; i < RING_SLOTS; i++) {
		if (r->slot[i].over)
			r->ops->event_free(r->module, r->slot[i].over);
		if (r->slot[i].sent)
			r->backend->release(r->module, SPACE_PINNED, r->slot[i].sent, r->slot_bytes);
	}
	if (r->uploaded)
		r->ops->event_free(r->module, r->uploaded);
	if (r->placed)
		r->ops->event_free(r->module, r->placed);
	if (r->page)
		r->backend->release(r->module, SPACE_PRIVATE, r->page, pages_bytes(r));
	free(r);
}

const struct step_page *ring_page(const struct ring *r, int micro_slot)
{
	return &r->page[micro_slot];
}

/* ---- to the device ---- */

static int enqueue_copy(struct ring *r, struct stream_handle *s, struct backend_copy c, struct err *err)
{
	return c.bytes ? r->ops->copy_async(r->module, s, &c, err) : 0;
}

/* The loss scale is read on the device: guard may not have decided it yet. */
static int send_pages(struct ring *r, struct ring_slot *s, const struct program *p, const struct step_page *first,
		      struct err *err)
{
	const bool scaled = r->state && p->kind != PROGRAM_EVAL && !first->rehearsal;
	const int n = p->schedule.slots;
	int rc;

	for (int i = 0; i < n; i++)
		s->pages[i] = exec_page(p, first, i);
	rc = enqueue_copy(r, r->compute, (struct backend_copy){ r->page, s->pages, (size_t)n * sizeof(*r->page) }, err);
	for (int i = 0; !rc && scaled && i < n; i++) {
		const double *state = prepared_address(r->prepared, r->state);

		rc = enqueue_copy(r, r->compute,
				  (struct backend_copy){ &r->page[i].loss_scale, state + STEP_GUARD_STATE_SCALE,
							 sizeof(double) },
				  err);
	}
	return rc;
}

static int send_values(struct ring *r, struct ring_slot *s, const struct program *p, const struct exec_call *call,
		       struct err *err)
{
	int rc = 0;

	s->sent->vote = call->vote;
	if (p->vote)
		rc = enqueue_copy(r, r->compute,
				  (struct backend_copy){ prepared_address(r->prepared, p->vote), &s->sent->vote,
							 sizeof(s->sent->vote) },
				  err);
	return rc || !exec_clears(p) ? rc
				     : enqueue_copy(r, r->compute,
						    (struct backend_copy){ prepared_address(r->prepared, p->result),
									   s->sent->none, sizeof(s->sent->none) },
						    err);
}

/* Copies all micro-batches of a tensor to where they wait for their run. */
static int upload_batch(struct ring *r, const struct program *p, const struct tensor *t, const void *from,
			struct err *err)
{
	const size_t bytes = (size_t)p->schedule.slots * tensor_bytes(t);

	return enqueue_copy(r, r->feed, (struct backend_copy){ prepared_feed(r->prepared, p, t), from, bytes }, err);
}

static int place_batch(struct ring *r, const struct program *p, const struct tensor *t, struct err *err)
{
	const char *from = prepared_feed(r->prepared, p, t);
	const size_t bytes = tensor_bytes(t);
	int rc = 0;

	for (int i = 0; !rc && i < p->schedule.slots; i++)
		rc = enqueue_copy(r, r->compute,
				  (struct backend_copy){ prepared_slot(r->prepared, t, i), from + (size_t)i * bytes,
							 bytes },
				  err);
	return rc;
}

static int send_batch(struct ring *r, const struct program *p, const struct exec_call *call, struct err *err)
{
	int rc = r->ops->wait(r->module, r->feed, r->placed, err);

	if (!rc)
		rc = upload_batch(r, p, p->inputs, call->inputs, err);
	if (!rc)
		rc = upload_batch(r, p, p->targets, call->targets, err);
	if (!rc)
		rc = r->ops->record(r->module, r->feed, r->uploaded, err);
	if (!rc)
		rc = r->ops->wait(r->module, r->compute, r->uploaded, err);
	if (!rc)
		rc = place_batch(r, p, p->inputs, err);
	if (!rc)
		rc = place_batch(r, p, p->targets, err);
	return rc ? rc : r->ops->record(r->module, r->compute, r->placed, err);
}

int ring_send(struct ring *r, int slot, const struct program *p, const struct exec_call *call, struct err *err)
{
	struct ring_slot *s = &r->slot[slot];
	int rc = send_pages(r, s, p, call->page, err);

	if (!rc)
		rc = send_values(r, s, p, call, err);
	return rc || !call->inputs ? rc : send_batch(r, p, call, err);
}

struct event_handle *ring_fed(const struct ring *r)
{
	return r->uploaded;
}

/* ---- and back ---- */

int ring_receive(struct ring *r, int slot, const struct program *p, struct err *err)
{
	const size_t bytes = p->losses ? tensor_bytes(p->losses) : 0;
	struct ring_slot *s = &r->slot[slot];
	struct exec_value values[EXEC_VALUES];
	int rc = 0;

	exec_values(values, p);
	for (int i = 0; !rc && i < EXEC_VALUES; i++)
		if (values[i].tensor)
			rc = enqueue_copy(r, r->compute,
					  (struct backend_copy){ (char *)s->results + values[i].offset,
								 prepared_address(r->prepared, values[i].tensor),
								 values[i].bytes },
					  err);
	for (int i = 0; !rc && bytes && i < p->schedule.slots; i++)
		rc = enqueue_copy(r, r->compute,
				  (struct backend_copy){ (char *)s->losses + (size_t)i * bytes,
							 prepared_slot(r->prepared, p->losses, i), bytes },
				  err);
	return rc ? rc : r->ops->record(r->module, r->compute, s->over, err);
}

struct event_handle *ring_over(const struct ring *r, int slot)
{
	return r->slot[slot].over;
}

void ring_read(const struct ring *r, int slot, const struct program *p, struct exec_done *ret)
{
	const struct ring_slot *s = &r->slot[slot];
	struct exec_value values[EXEC_VALUES];

	exec_values(values, p);
	ret->results = (struct exec_results){ .votes = 0 };
	for (int i = 0; i < EXEC_VALUES; i++)
		if (values[i].tensor)
			memcpy((char *)&ret->results + values[i].offset, (const char *)s->results + values[i].offset,
			       values[i].bytes);
	ret->losses = p->losses ? s->losses : NULL;
}
