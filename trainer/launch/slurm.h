/* slurm.h: Slurm's short forms of lists (srun(1), "SLURM_TASKS_PER_NODE", "SLURM_NODELIST"), written out without its
 * tools, which containers often lack. */
#ifndef DPT_LAUNCH_SLURM_H
#define DPT_LAUNCH_SLURM_H

#include <stdbool.h>
#include <stddef.h>

/* The i-th number of "4(x2),3": 4, 4, 3. Negative: there is none, or the text is damaged. */
int slurm_number(const char *text, int i);

/* The i-th name of "gpu[01-03,7],login": gpu01, gpu02, gpu03, gpu7, login. false: there is none, the text is damaged,
 * or the name does not fit into n bytes. */
bool slurm_name(const char *list, int i, char *ret, size_t n);

#endif
