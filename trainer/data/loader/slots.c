/* slots.c: computes the sizes of batch slots. */
#include "trainer/data/loader/slots.h"

#define CHUNK_NUMBERS 65536

static size_t align_slot_bytes(size_t n)
{
	return (n + SLOTS_ALIGN_BYTES - 1) / SLOTS_ALIGN_BYTES * SLOTS_ALIGN_BYTES;
}

struct fill slots_fill(const struct loader_opts *o)
{
	return (struct fill){ .dataset = o->dataset,
			      .norm = o->norm ? *o->norm : dataset_norm(o->dataset),
			      .split = o->split,
			      .dtype = o->dtype,
			      .augment = o->augment,
			      .seed = o->sampler.seed,
			      .raw_bytes = o->raw_bytes };
}

/* One batch at the caller, one ready, and enough to give every worker a chunk. */
static int count_needed_slots(const struct loader_opts *o, const struct slots *s)
{
	int64_t claims = s->capacity > s->chunk ? (s->capacity + s->chunk - 1) / s->chunk : 1; /* chunks per batch */
	int64_t n = 3 + (o->workers - 1) / claims;

	return o->slots > 0 ? o->slots : n > 4 ? (int)n : 4;
}

int slots_measure(struct slots *ret, const struct loader_opts *o)
{
	const struct range first = sampler_part(&o->sampler, 0, 0);
	const struct fill f = slots_fill(o);
	struct slots s = { .capacity = first.end - first.begin, .sample_bytes = fill_input_bytes(&f) };
	size_t inputs, targets;

	if (o->sampler.micro && o->sampler.micro < s.capacity)
		s.capacity = o->sampler.micro;
	s.chunk = CHUNK_NUMBERS / (int64_t)(s.sample_bytes / sizeof(int32_t) + 1);
	s.chunk = s.chunk ? s.chunk : 1;
	s.n = count_needed_slots(o, &s);
	if (__builtin_mul_overflow((size_t)s.capacity, s.sample_bytes, &inputs) ||
	    __builtin_mul_overflow((size_t)s.capacity, fill_targets(o->dataset) * sizeof(int32_t), &targets) ||
	    inputs > PTRDIFF_MAX / 4 || targets > PTRDIFF_MAX / 4)
		return -1;
	s.input_bytes = align_slot_bytes(inputs);
	s.bytes = align_slot_bytes(inputs) + align_slot_bytes(targets);
	*ret = s;
	return 0;
}

size_t loader_bytes(const struct loader_opts *o)
{
	struct slots s;
	size_t total;

	return slots_measure(&s, o) || __builtin_mul_overflow(s.bytes, (size_t)s.n, &total) ? 0 : total;
}
