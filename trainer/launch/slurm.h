/* slurm.h: expands Slurm's compressed lists (srun(1), "SLURM_TASKS_PER_NODE", "SLURM_NODELIST") without its tools,
 * which containers often lack. */
#ifndef DPT_LAUNCH_SLURM_H
#define DPT_LAUNCH_SLURM_H

#include <stdbool.h>
#include <stddef.h>

/* Returns number i of "4(x2),3": 4, 4, 3. Negative: there is no such number, or the text is damaged. */
int slurm_number(const char *text, int i);

/* Writes name i of "gpu[01-03,7],login": gpu01, gpu02, gpu03, gpu7, login. false: there is no such name, the text is
 * damaged, or the name does not fit into n bytes. */
bool slurm_name(const char *list, int i, char *ret, size_t n);

#endif
