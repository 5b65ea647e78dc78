/* tensors.h: the persistent tensors of a run as whole ones, those of its model (prepare.h), in ranges of elements,
 * whichever ranks hold them.
 * It alone asks a strategy who holds what, and through it alone they are read and written between steps.
 *
 * Reading and giving are led by rank 0; the others answer until it says that it has done:
 *
 *	rank 0:  tensors_get, tensors_give … tensors_end      others:  tensors_follow
 *	rank 0:  tensors_get … tensors_helped                 others:  tensors_help     (reading alone)
 *
 * Where rank 0 holds everything, reading needs nobody: tensors_help and tensors_helped return at once. */
#ifndef DPT_STATE_TENSORS_H
#define DPT_STATE_TENSORS_H

#include "trainer/program/prepare.h"
#include "trainer/program/rank.h"

struct tensors { /* both borrowed */
	const struct prepared *prepared; /* with memory */
	struct comm *comm;
	const struct graph *grads; /* a program's: its parameters' gradients are read in their place; NULL */
	const unsigned char *copy; /* a snapshot (snapshot.h), which is read in their place; NULL */
};

struct tensors tensors_of(const struct prepared *p, const struct rank *r);

struct strategy_part tensors_all(const struct tensor *t);
struct strategy_part tensors_held(const struct tensors *s, const struct tensor *t, int rank);
size_t tensors_bytes(const struct tensor *t); /* of the whole tensor */
const struct tensor *tensors_average(const struct tensors *s, const struct tensor *t); /* NULL: none is kept */

/* Elements [part.begin, part.end) lie at `from`: this rank keeps what it holds of them. */
int tensors_put(const struct tensors *s, const struct tensor *t, struct strategy_part part, const void *from,
		struct err *err);

/* Rank 0: elements [part.begin, part.end) to `to`, from whoever holds them. */
int tensors_get(const struct tensors *s, const struct tensor *t, struct strategy_part part, void *to, struct err *err);

/* Rank 0: every rank keeps what it holds of elements [part.begin, part.end), which lie at `from`. */
int tensors_give(const struct tensors *s, const struct tensor *t, struct strategy_part part, const void *from,
		 struct err *err);

/* failure: what the others' tensors_follow fails with; NULL: nothing. */
int tensors_end(const struct tensors *s, const struct err *failure, struct err *err);
int tensors_follow(const struct tensors *s, struct err *err);

int tensors_helped(const struct tensors *s, int rc, struct err *err); /* rc: how it went; returned unless 0 */
int tensors_help(const struct tensors *s, struct err *err);

/* Collective: rank 0's running statistics become everybody's. */
int tensors_share_stats(const struct tensors *s, struct err *err);

#endif
