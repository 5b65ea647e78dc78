/* SPDX-License-Identifier: Apache-2.0 */
/* lmdb.c: the input as an LMDB database of pictures. */
#include "tests/fuzz/container.h"
#include "trainer/data/container/container_scan.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	container_look(bytes, n, lmdb_scan);
	return 0;
}
