/* machine.h: facts about the machine, the process and the source tree, for the record of a run. */
#ifndef DPT_LAUNCH_MACHINE_H
#define DPT_LAUNCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Each writes a line of text, "" when unknown. */
void machine_host(char *text, size_t n);
void machine_node(char *text, size_t n); /* the same for processes that can share memory and sockets, for no others */
void machine_cpu(char *text, size_t n);	   /* model and cores */
void machine_system(char *text, size_t n); /* kernel */
void machine_commit(char *text, size_t n); /* git commit of the current folder's repository */
void machine_command(int argc, char *const argv[], char *text, size_t n); /* as one could type it */

int64_t machine_peak_bytes(void); /* peak resident memory of this process; 0 unknown */

/* What this process holds now, without files that are mapped: its own pages, those it shares with other ranks, and what
 * was swapped out. 0 unknown. */
int64_t machine_held_bytes(void);

/* What processes can still allocate here: of the machine and of every control group above this one. 0 unknown. */
int64_t machine_available_bytes(void);

/* What this process may still map (ulimit -v); INT64_MAX: no limit. */
int64_t machine_mappable_bytes(void);

#endif
