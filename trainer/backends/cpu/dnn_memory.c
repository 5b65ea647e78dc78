/* dnn_memory.c: small pieces are cut from a fixed room, and wait for the next ask of their size on a stack; a block is
 * mapped for itself, and grows with what is asked of it, so that there are as many as are out at a time. */
#include "trainer/backends/cpu/dnn_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#define GRAIN ((size_t)16) /* sizes of pieces are its multiples, the head included */
#define SIZES 64
#define ROOM ((size_t)1 << 20)
#define BLOCKS 64
#define PAGE ((size_t)4096)
#define HUGE_PAGE ((size_t)2 << 20)

struct piece { /* its head, before what its user has */
	struct piece *below; /* while it is free */
	size_t size;	     /* grains */
};

struct block {
	void *at; /* NULL: not mapped */
	size_t bytes;
	bool out;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static _Alignas(16) unsigned char room[ROOM];
static size_t room_used;
static struct piece *free_pieces[SIZES + 1];
static struct block blocks[BLOCKS];

static _Atomic int running;

void dnn_memory_begin(void)
{
	atomic_fetch_add_explicit(&running, 1, memory_order_relaxed);
}

void dnn_memory_end(void)
{
	atomic_fetch_sub_explicit(&running, 1, memory_order_relaxed);
}

static bool is_running(void)
{
	return atomic_load_explicit(&running, memory_order_relaxed) > 0;
}

static struct piece *cut(size_t size)
{
	struct piece *p = (struct piece *)(void *)(room + room_used);

	if (room_used + size * GRAIN > ROOM)
		return NULL;
	room_used += size * GRAIN;
	p->size = size;
	return p;
}

void *dnn_memory_piece(size_t bytes)
{
	const size_t size = 1 + (bytes + GRAIN - 1) / GRAIN;
	struct piece *p;

	if (!is_running() || bytes > (SIZES - 1) * GRAIN)
		return NULL;
	pthread_mutex_lock(&lock);
	p = free_pieces[size];
	if (p)
		free_pieces[size] = p->below;
	else
		p = cut(size);
	pthread_mutex_unlock(&lock);
	return p ? p + 1 : NULL;
}

bool dnn_memory_give_piece(void *user)
{
	struct piece *p;

	if ((uintptr_t)user - (uintptr_t)room >= ROOM)
		return false;
	p = (struct piece *)user - 1;
	pthread_mutex_lock(&lock);
	p->below = free_pieces[p->size];
	free_pieces[p->size] = p;
	pthread_mutex_unlock(&lock);
	return true;
}

/* The smallest free block that is large enough; else the largest of those that are too small, which grows, or one that
 * was never used. NULL: all are out. */
static struct block *find(size_t bytes)
{
	struct block *found = NULL;

	for (struct block *b = blocks; b < blocks + BLOCKS; b++) {
		const bool enough = b->bytes >= bytes, had = found && found->bytes >= bytes;

		if (!b->out && (!found || (enough && (!had || b->bytes < found->bytes)) ||
				(!enough && !had && b->bytes > found->bytes)))
			found = b;
	}
	return found;
}

static size_t up_to(size_t bytes, size_t page)
{
	return (bytes + page - 1) / page * page;
}

/* Whole huge pages are mapped where one fits, so that it lies on one; what is left of the last is given back, as a huge
 * page is there as a whole once any of it is touched. */
static bool grow(struct block *b, size_t bytes)
{
	const size_t mapped = up_to(bytes, bytes < HUGE_PAGE ? PAGE : HUGE_PAGE);
	char *p;

	if (b->at)
		munmap(b->at, b->bytes);
	*b = (struct block){ .bytes = 0 };
	p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	b->bytes = up_to(bytes, PAGE);
	if (mapped > b->bytes)
		munmap(p + b->bytes, mapped - b->bytes);
	madvise(p, b->bytes, MADV_HUGEPAGE);
	b->at = p;
	return true;
}

void *dnn_memory_block(size_t bytes)
{
	struct block *b;
	void *at = NULL;

	if (!is_running() || bytes == 0 || bytes > SIZE_MAX / 2)
		return NULL;
	pthread_mutex_lock(&lock);
	b = find(bytes);
	if (b && (b->bytes >= bytes || grow(b, bytes))) {
		b->out = true;
		at = b->at;
	}
	pthread_mutex_unlock(&lock);
	return at;
}

bool dnn_memory_give_block(void *p)
{
	bool found = false;

	if ((uintptr_t)p % PAGE)
		return false;
	pthread_mutex_lock(&lock);
	for (struct block *b = blocks; !found && b < blocks + BLOCKS; b++)
		if (b->out && b->at == p) {
			b->out = false;
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}
