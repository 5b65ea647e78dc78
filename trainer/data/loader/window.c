/* window.c: lanes and windows. */
#include "trainer/data/loader/window.h"

#include "trainer/data/permute.h"

struct lane_span {
	int64_t number, first; /* first position in a batch */
	int64_t width;	       /* positions in a whole batch */
	int64_t begin, length; /* range in 0 … n-1 */
};

void window_init(struct window *w, const struct window_opts *o)
{
	*w = (struct window){ .o = *o, .batches = o->window / o->global };
	if (w->batches < 1)
		w->batches = 1;
}

static int64_t min_place(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Positions of a batch that belong to lower lanes. */
static int64_t count_places_before(const struct window *w, int64_t lane)
{
	return (int64_t)(((__int128)lane * w->o.global + WINDOW_LANES - 1) / WINDOW_LANES);
}

static struct lane_span locate_lane(const struct window *w, int64_t place)
{
	int64_t number = window_lane_number(place, w->o.global);
	int64_t first = count_places_before(w, number), next = count_places_before(w, number + 1);
	int64_t whole = w->o.n / w->o.global, rest = w->o.n % w->o.global; /* batches */

	return (struct lane_span){ .number = number,
				   .first = first,
				   .width = next - first,
				   .begin = whole * first + min_place(rest, first),
				   .length = whole * (next - first) + min_place(rest, next) - min_place(rest, first) };
}

/* Permutes within a window: returns the sample of the lane at its k-th position. */
static int64_t permute_in_window(const struct window *w, const struct lane_span *l, int64_t k)
{
	int64_t size = w->batches * l->width, number = k / size, begin = number * size;
	struct rng_key key = { w->o.key.seed, w->o.key.stream };
	struct permute p;

	key.seed = rng_u64(key, (uint64_t)number * WINDOW_LANES + (uint64_t)l->number);
	permute_init(&p, key, (uint64_t)min_place(size, l->length - begin));
	return begin + (int64_t)permute_at(&p, (uint64_t)(k - begin));
}

int64_t window_at(const struct window *w, int64_t position, int64_t skip)
{
	int64_t place = position % w->o.global;
	struct lane_span l = locate_lane(w, place);
	int64_t k = position / w->o.global * l.width + place - l.first;

	return l.begin + permute_in_window(w, &l, (k + skip) % l.length);
}

int64_t window_lane(const struct window *w, int64_t position)
{
	return locate_lane(w, position % w->o.global).length;
}
