/* SPDX-License-Identifier: Apache-2.0 */
/* profiler.c: a profiler as NVTX loads it ($NVTX_INJECTION64_PATH): writes each range that a process pushes, with its
 * depth, as a line to the file $DPTRAIN_FAKE_PROFILE. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out;
static int depth;

static int NVTX_API push(const char *name)
{
	fprintf(out, "%d %s\n", depth, name);
	return depth++;
}

static int NVTX_API pop(void)
{
	fflush(out);
	return --depth;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of)
{
	const NvtxExportTableCallbacks *callbacks = table_of(NVTX_ETID_CALLBACKS);
	const char *path = getenv("DPTRAIN_FAKE_PROFILE");
	NvtxFunctionTable table = NULL;
	unsigned n = 0;

	if (!path || !callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &n))
		return 0;
	out = fopen(path, "a");
	if (!out || n <= NVTX_CBID_CORE_RangePop)
		return 0;
	*table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
	*table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
	return 1;
}
