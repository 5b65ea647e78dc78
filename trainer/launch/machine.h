/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h: properties of the machine, the process and the source tree, for the record of a run. */
#ifndef DPT_LAUNCH_MACHINE_H
#define DPT_LAUNCH_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Each writes a line of text; "": unknown. */
void machine_host(char *text, size_t n);
/* the same for processes that share memory and sockets, different for all others */
void machine_node(char *text, size_t n);
void machine_cpu(char *text, size_t n);	   /* model and cores */
void machine_system(char *text, size_t n); /* kernel */
void machine_commit(char *text, size_t n); /* git commit of the current folder's repository */
void machine_command(int argc, char *const argv[], char *text, size_t n); /* as typed in a shell */

int64_t machine_peak_bytes(void); /* peak resident memory of this process; 0: unknown */

/* The memory of this process now, without mapped files: its private pages, its share of pages that several ranks use
 * (a half of those of two), and swapped pages. 0: unknown. */
int64_t machine_held_bytes(void);

/* The memory that processes can still allocate: the least of the machine's and of every enclosing control group's. 0:
 * unknown. */
int64_t machine_available_bytes(void);

/* The address space that this process may still map (ulimit -v); INT64_MAX: no limit. */
int64_t machine_mappable_bytes(void);

#endif
