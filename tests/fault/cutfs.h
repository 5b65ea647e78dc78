/* SPDX-License-Identifier: Apache-2.0 */
/* cutfs.h: an SQLite file system that loses power. It forwards everything to the real one and records what was written
 * and not yet synced. At the cut, another folder receives a state that a disk may then have: synced data are present,
 * of the rest any part, sector by sector; afterwards every write and sync of the old files fails. */
#ifndef DPT_TESTS_FAULT_CUTFS_H
#define DPT_TESTS_FAULT_CUTFS_H

#include <stdbool.h>
#include <stdint.h>

/* Makes it the file system of connections opened from now on. relaxed: connections run with synchronous=NORMAL
 * whatever they request. */
int cutfs_install(bool relaxed);

/* The power fails after this many further writes and syncs of files below folder; the remaining state goes to the
 * folder `to`. keep: how many of 100 unsynced sectors arrive. Forgets everything about earlier files. */
void cutfs_arm(const char *folder, const char *to, uint64_t operations, unsigned keep, unsigned seed);

bool cutfs_is_cut(void);
void cutfs_cut(void); /* now, unless it already failed */

uint64_t cutfs_syncs(void);

#endif
