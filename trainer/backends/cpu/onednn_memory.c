/* SPDX-License-Identifier: Apache-2.0 */
/* onednn_memory.c: small pieces are cut from a fixed pool and kept on a stack for the next request of their size. Each
 * block is mapped separately and grows with the requests, so there are as many blocks as are in use at a time. Large
 * blocks keep little for reuse, because some are never freed. Large requests use the memory of the running call, unless
 * two calls run at a time: a request does not name its call. */
#include "tracker/base/round.h"
#include "trainer/backends/cpu/onednn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define GRAIN ((size_t)16) /* sizes of pieces are multiples of this, including the head */
#define SIZES 64
#define ROOM ((size_t)1 << 20)
#define BLOCKS 64
#define SPARE 4			  /* a block has at most this many times the requested pages */
#define LARGE ((size_t)512 << 10) /* only memory that a call frees before it ends is this large */
#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)

struct pool_piece {		  /* the head of a piece, before the user's bytes */
	struct pool_piece *below; /* while it is free */
	size_t size;		  /* grains */
};

struct pool_block {
	void *at; /* NULL: not mapped */
	size_t bytes;
	size_t asked; /* whole pages */
	bool out;
};

struct lent_room {
	const void *of; /* the memory that the call passed; NULL: none */
	char *at;	/* its first whole page */
	size_t bytes, used;
	int out;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects everything below */
static _Alignas(16) unsigned char room[ROOM];
static size_t room_used;
static struct pool_piece *free_pieces[SIZES + 1];
static struct pool_block blocks[BLOCKS];
static struct lent_room lent;
static size_t large_out, large_most; /* bytes of blocks */

static _Atomic int running; /* changes under the lock */

void dnn_memory_begin(void *of, size_t bytes)
{
	const size_t skip = round_up_bytes((uintptr_t)of, PAGE) - (uintptr_t)of;

	pthread_mutex_lock(&lock);
	if (atomic_fetch_add_explicit(&running, 1, memory_order_relaxed) == 0 && of && bytes > skip)
		lent = (struct lent_room){ .of = of, .at = (char *)of + skip, .bytes = bytes - skip };
	pthread_mutex_unlock(&lock);
}

void dnn_memory_end(const void *of)
{
	pthread_mutex_lock(&lock);
	atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed);
	if (lent.of == of)
		lent = (struct lent_room){ .of = NULL };
	pthread_mutex_unlock(&lock);
}

size_t dnn_memory_most(void)
{
	size_t most;

	pthread_mutex_lock(&lock);
	most = large_most;
	large_most = large_out;
	pthread_mutex_unlock(&lock);
	return most ? most + PAGE : 0;
}

static bool is_running(void)
{
	return atomic_load_explicit(&running, memory_order_relaxed) > 0;
}

static struct pool_piece *cut_pool_piece(size_t size)
{
	struct pool_piece *p = (struct pool_piece *)(void *)(room + room_used);

	if (room_used + size * GRAIN > ROOM)
		return NULL;
	room_used += size * GRAIN;
	p->size = size;
	return p;
}

void *dnn_memory_piece(size_t bytes)
{
	const size_t size = 1 + (bytes + GRAIN - 1) / GRAIN;
	struct pool_piece *p;

	if (!is_running() || bytes > (SIZES - 1) * GRAIN)
		return NULL;
	pthread_mutex_lock(&lock);
	p = free_pieces[size];
	if (p)
		free_pieces[size] = p->below;
	else
		p = cut_pool_piece(size);
	pthread_mutex_unlock(&lock);
	return p ? p + 1 : NULL;
}

bool dnn_memory_give_piece(void *user)
{
	struct pool_piece *p;

	if ((uintptr_t)user - (uintptr_t)room >= ROOM)
		return false;
	p = (struct pool_piece *)user - 1;
	pthread_mutex_lock(&lock);
	p->below = free_pieces[p->size];
	free_pieces[p->size] = p;
	pthread_mutex_unlock(&lock);
	return true;
}

/* For whole pages. Returns the smallest free block that is large enough; else the largest of those that are too small,
 * which grows, or an unused one. NULL: all are in use. */
static struct pool_block *find_free_block(size_t bytes)
{
	struct pool_block *found = NULL;

	for (struct pool_block *b = blocks; b < blocks + BLOCKS; b++) {
		const bool enough = b->bytes >= bytes, had = found && found->bytes >= bytes;

		if (!b->out && b->bytes <= SPARE * bytes &&
		    (!found || (enough && (!had || b->bytes < found->bytes)) ||
		     (!enough && !had && b->bytes > found->bytes)))
			found = b;
	}
	return found;
}

/* Maps whole huge pages if one fits, so that a block starts on one. The rest of the last one is unmapped: touching any
 * part of a huge page makes all of it resident. */
static bool grow_pool_block(struct pool_block *b, size_t bytes)
{
	const size_t mapped = round_up_bytes(bytes, bytes < HUGE_PAGE ? PAGE : HUGE_PAGE);
	char *p;

	if (b->at)
		munmap(b->at, b->bytes);
	*b = (struct pool_block){ .bytes = 0 };
	p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	b->bytes = bytes;
	if (mapped > b->bytes)
		munmap(p + b->bytes, mapped - b->bytes);
	madvise(p, b->bytes, MADV_HUGEPAGE);
	b->at = p;
	return true;
}

/* Under the lock. NULL: it does not fit, or may belong to another call. */
static void *cut_lent(size_t bytes)
{
	void *at;

	if (!lent.of || bytes < LARGE || bytes > lent.bytes - lent.used ||
	    atomic_load_explicit(&running, memory_order_relaxed) != 1)
		return NULL;
	at = lent.at + lent.used;
	lent.used += bytes;
	lent.out++;
	return at;
}

static bool give_lent(const void *p)
{
	if (!lent.of || (uintptr_t)p - (uintptr_t)lent.at >= lent.bytes)
		return false;
	if (!--lent.out)
		lent.used = 0;
	return true;
}

static void *take_pool_block(struct pool_block *b, size_t bytes)
{
	b->out = true;
	b->asked = bytes;
	if (bytes >= LARGE)
		large_out += bytes;
	if (large_out > large_most)
		large_most = large_out;
	return b->at;
}

static void return_pool_block(struct pool_block *b)
{
	b->out = false;
	if (b->asked >= LARGE)
		large_out -= b->asked;
}

void *dnn_memory_block(size_t bytes)
{
	const size_t whole = round_up_bytes(bytes, PAGE);
	struct pool_block *b;
	void *at;

	if (!is_running() || bytes == 0 || bytes > SIZE_MAX / 2)
		return NULL;
	pthread_mutex_lock(&lock);
	at = cut_lent(whole);
	b = at ? NULL : find_free_block(whole);
	if (b && (b->bytes >= whole || grow_pool_block(b, whole)))
		at = take_pool_block(b, whole);
	pthread_mutex_unlock(&lock);
	return at;
}

bool dnn_memory_give_block(void *p)
{
	bool found;

	if ((uintptr_t)p % PAGE)
		return false;
	pthread_mutex_lock(&lock);
	found = give_lent(p);
	for (struct pool_block *b = blocks; !found && b < blocks + BLOCKS; b++)
		if (b->out && b->at == p) {
			return_pool_block(b);
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}
