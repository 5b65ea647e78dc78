/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.c: a stub of the driver that answers every call of cuDNN 9 while it plans without a device. It replaces
 * libcuda.so.1 when the real cuDNN compiles its kernels; none of them runs. */
#define NO_DEVICE 100

/* Named as the driver's functions, without prototypes: arguments are ignored. */
#define YES(name)                                                                                                      \
	int name(void);                                                                                                \
	int name(void)                                                                                                 \
	{                                                                                                              \
		return 0;                                                                                              \
	}

/* The first argument receives a handle, which is never dereferenced. */
#define HANDLE(name)                                                                                                   \
	int name(void **ret);                                                                                          \
	int name(void **ret)                                                                                           \
	{                                                                                                              \
		static char nothing;                                                                                   \
		*ret = &nothing;                                                                                       \
		return 0;                                                                                              \
	}

/* The first argument receives a number. */
#define NUMBER(name)                                                                                                   \
	int name(int *ret);                                                                                            \
	int name(int *ret)                                                                                             \
	{                                                                                                              \
		*ret = 1;                                                                                              \
		return 0;                                                                                              \
	}

int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
	(void)flags;
	return NO_DEVICE;
}

HANDLE(cuLibraryGetKernel)
HANDLE(cuLibraryLoadData)
HANDLE(cuLibraryLoadFromFile)
HANDLE(cuLinkCreate)
HANDLE(cuLinkCreate_v2)
HANDLE(cuModuleGetFunction)
HANDLE(cuModuleLoadData)
HANDLE(cuModuleLoadDataEx)
HANDLE(cuModuleLoadFatBinary)

NUMBER(cuFuncGetAttribute)
NUMBER(cuKernelGetAttribute)
NUMBER(cuDeviceGetAttribute)
NUMBER(cuOccupancyMaxActiveBlocksPerMultiprocessor)

YES(cuCtxGetCurrent)
YES(cuCtxGetDevice)
YES(cuCtxGetLimit)
YES(cuCtxPopCurrent)
YES(cuCtxPushCurrent)
YES(cuDeviceGet)
YES(cuDeviceGetCount)
YES(cuDevicePrimaryCtxRelease)
YES(cuDevicePrimaryCtxReset)
YES(cuDevicePrimaryCtxRetain)
YES(cuDriverGetVersion)
YES(cuFuncSetAttribute)
YES(cuGetErrorName)
YES(cuGetErrorString)
YES(cuKernelSetAttribute)
YES(cuLaunchCooperativeKernel)
YES(cuLaunchKernel)
YES(cuLaunchKernelEx)
YES(cuLibraryUnload)
YES(cuLinkAddData)
YES(cuLinkAddData_v2)
YES(cuLinkAddFile_v2)
YES(cuLinkComplete)
YES(cuLinkDestroy)
YES(cuMemcpyDtoH_v2)
YES(cuModuleGetGlobal_v2)
YES(cuModuleUnload)
YES(cuOccupancyMaxPotentialClusterSize)
YES(cuStreamGetCtx)
YES(cuStreamSynchronize)
YES(cuTensorMapEncodeTiled)
