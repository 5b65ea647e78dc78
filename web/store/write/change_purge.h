/* change_purge.h: removes deleted runs, models and experiments for good, a bounded part at a time, inside the writer's transaction. A run that is removed
 * leaves its id in the table gone. Private to web/store; touches no files but the store's. */
#ifndef DPT_STORE_CHANGE_PURGE_H
#define DPT_STORE_CHANGE_PURGE_H

#include "web/store/write/apply.h"

/* The first call makes a deleted run gone and leaves its rows; each further one deletes some of them. */
int purge_run(struct state *st, struct apply_job *job, struct err *err);

/* The first call makes the deletion final (an experiment that is restored does not bring it back). */
int purge_model(struct state *st, struct apply_job *job, struct err *err);

/* Only an empty one, and never Default; its runs and models go first. */
int purge_experiment(struct state *st, struct apply_job *job, struct err *err);

/* Gives some free pages of the file back: res.removed pages; res.durable are left. */
int purge_pages(struct state *st, struct apply_job *job, struct err *err);

#endif
