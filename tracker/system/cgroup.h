/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h: small files of the kernel, and the control group of this process, for both versions of that interface:
 * throttled time, memory in use and waits for memory, and what its limits and those of its ancestors leave. The only
 * access to control groups in the program. */
#ifndef DPT_SYSTEM_CGROUP_H
#define DPT_SYSTEM_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* ---- small text files of the kernel, below a root folder ("" on a machine; tests use their own folders) ---- */

#define PROC_TEXT_BYTES 16384

/* Reads the first PROC_TEXT_BYTES - 1 bytes of <root>/<path>, with a NUL. Returns false (and "") if it is
 * unreadable. */
bool proc_read(const char *root, const char *path, char text[PROC_TEXT_BYTES]);

/* Returns the first number in a file; NaN: none. */
double proc_number(const char *root, const char *path);

/* Returns the number after key in lines "key number…" ("some avg10=… total=N": key "some", mark "total="; mark NULL:
 * directly after the key and its colon); NaN: none. */
double proc_value(const char *text, const char *key, const char *mark);

/* ---- the control group ---- */

#define CGROUP_NO_QUOTA (1 << 20) /* cores */

/* NaN if the system does not report it. */
struct cgroup {
	double throttled_s;   /* since the groups were created, over their cores. Sum over the group and its ancestors:
			       * the one that throttles may change */
	double memory_bytes;  /* in use by the first of these groups with a limit; NaN without one */
	double memory_wait_s; /* some thread of the group waited for memory (version 2) */
};

/* root: as for proc_read, also below. */
void cgroup_read(struct cgroup *ret, const char *root);

/* Returns the cores that the tightest quota of the group and its ancestors allows, rounded up; CGROUP_NO_QUOTA without
 * a quota. */
int cgroup_cores(const char *root);

/* Returns the bytes that can still be allocated before the tightest memory limit, including reclaimable memory, at
 * least 1; INT64_MAX without a limit. */
int64_t cgroup_room_bytes(const char *root);

#endif
