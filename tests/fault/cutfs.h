/* cutfs.h: an SQLite file system that loses power. It passes everything on to the real one and remembers what was
 * written and not synced since. At the cut, another folder gets a state that a disk may be in then: what was synced is
 * there, of the rest any part, sector by sector; from then on every write and sync of the old files fails. */
#ifndef DPT_TESTS_FAULT_CUTFS_H
#define DPT_TESTS_FAULT_CUTFS_H

#include <stdbool.h>
#include <stdint.h>

/* Makes it the file system of connections that are opened from now on. relaxed: connections run with
 * synchronous=NORMAL whatever they ask for. */
int cutfs_install(bool relaxed);

/* The power goes after so many further writes and syncs of files below folder; what is left goes to the folder to.
 * keep: of 100 unsynced sectors how many arrive. Forgets everything about earlier files. */
void cutfs_arm(const char *folder, const char *to, uint64_t operations, unsigned keep, unsigned seed);

bool cutfs_is_cut(void);
void cutfs_cut(void); /* now, unless it was */

uint64_t cutfs_syncs(void);

#endif
