/* nonfinite.h: which node of a program was the first to make a number that is not finite, as the program runs. Looks at
 * every result, so it is for a step that has failed already. */
#ifndef DPT_RUN_NONFINITE_H
#define DPT_RUN_NONFINITE_H

#include "trainer/run/exec/exec.h"

enum nonfinite_kind {
	NONFINITE_NONE,	   /* every result was finite */
	NONFINITE_FOREIGN, /* the first one came from another rank */
	NONFINITE_MADE,	   /* by a node, from finite operands */
	NONFINITE_READ,	   /* by a node, of a parameter or of the inputs */
};

struct nonfinite {
	enum nonfinite_kind kind;
	char node[128], op[32], tensor[128]; /* tensor: what it was read from; "" */
	bool backward, is_nan;
	int64_t sample; /* of this rank's micro-batch, from 0; -1: of no sample alone */
	int64_t micro;
};

struct nonfinite_watch;

/* Of programs of p, which is borrowed; NULL: out of memory. */
struct nonfinite_watch *nonfinite_new(const struct prepared *p);
void nonfinite_free(struct nonfinite_watch *w); /* NULL is fine */

/* For exec_call.look, while this program runs. */
struct exec_look nonfinite_look(struct nonfinite_watch *w, const struct program *p);

const struct nonfinite *nonfinite_first(const struct nonfinite_watch *w);

#endif
