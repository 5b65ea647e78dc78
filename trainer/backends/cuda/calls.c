/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c: see calls.h. */
#include "trainer/backends/cuda/calls.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DPT_CUDA_FOLDERS
#define DPT_CUDA_FOLDERS ""
#endif

#define CALL(id, result, name, prototype)                                                                              \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), result prototype),                               \
		       #name " does not match its header");
#include "trainer/backends/cuda/calls.def"

struct cuda_library_file {
	const char *name, *file;
	int least;
	const char *package;
};

static const struct cuda_library_file libraries[CUDA_LIBRARIES] = {
#define LIBRARY(id, name, file, least, package) [CUDA_##id] = { name, file, least, package },
#include "trainer/backends/cuda/calls.def"
};

/* Position of a function pointer in struct cuda_calls. */
struct cuda_call {
	enum cuda_library library;
	const char *name;
	size_t offset;
};

static const struct cuda_call calls[] = {
#define CALL(id, result, name, prototype) { CUDA_##id, #name, offsetof(struct cuda_calls, name) },
#include "trainer/backends/cuda/calls.def"
	{ CUDA_LIBRARIES, NULL, 0 },
};

const char *cuda_library_name(enum cuda_library which)
{
	return libraries[which].name;
}

void cuda_library_version(const struct cuda_calls *c, enum cuda_library which, char *text, size_t n)
{
	const int v = c->version[which];

	snprintf(text, n, "%s %d.%d.%d", libraries[which].name, v / 10000, v / 100 % 100, v % 100);
}

/* True if the library's header was present at build time: only then it has calls. */
static bool is_built_with(enum cuda_library which)
{
	for (const struct cuda_call *c = calls; c->name; c++)
		if (c->library == which)
			return true;
	return false;
}

struct library_search {
	const char *file;
	void *handle;
	char why[1024]; /* the loader's message for the first file found */
};

static void try_library_file(struct library_search *s, const char *path)
{
	s->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!s->handle && !s->why[0])
		snprintf(s->why, sizeof(s->why), "%s", dlerror());
}

/* Tries the file in a folder and in the subfolders of NVIDIA's wheels. */
static void try_library_folder(struct library_search *s, const char *folder, size_t length)
{
	static const char *const places[] = { "", "/cudnn/lib", "/cu13/lib", "/nccl/lib" };
	char path[4096];

	for (size_t i = 0; !s->handle && i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(path, sizeof(path), "%.*s%s/%s", (int)length, folder, places[i], s->file);

		if (n < (int)sizeof(path) && access(path, F_OK) == 0)
			try_library_file(s, path);
	}
}

static void try_library_folders(struct library_search *s, const char *folders)
{
	while (!s->handle && folders && *folders) {
		size_t n = strcspn(folders, ":");

		if (n)
			try_library_folder(s, folders, n);
		folders += n + (folders[n] == ':');
	}
}

static int open_library(const struct cuda_library_file *l, void **ret, struct err *err)
{
	struct library_search s = { .file = l->file };

	try_library_folders(&s, getenv("DPTRAIN_CUDA_LIBS"));
	try_library_folders(&s, DPT_CUDA_FOLDERS);
	if (!s.handle && s.why[0])
		return err_set(err, ERR_UNSUPPORTED, "%s cannot be loaded: %s", l->name, s.why);
	if (!s.handle)
		s.handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
	if (!s.handle)
		return err_set(err, ERR_NOENT,
			       "%s (%s) not found: set DPTRAIN_CUDA_LIBS to its folder (pip install %s provides it)",
			       l->name, l->file, l->package);
	*ret = s.handle;
	return 0;
}

static int load_library_calls(struct cuda_calls *c, enum cuda_library which, void *handle, struct err *err)
{
	for (const struct cuda_call *k = calls; k->name; k++) {
		void *address = k->library == which ? dlsym(handle, k->name) : NULL;

		if (k->library != which)
			continue;
		if (!address)
			return err_set(err, ERR_UNSUPPORTED, "%s (%s) has no %s: install the version of %s",
				       libraries[which].name, libraries[which].file, k->name, libraries[which].package);
		memcpy((char *)c + k->offset, &address, sizeof(address));
	}
	return 0;
}

/* NVRTC loads its builtins by name; the loader finds them once they are open. This opens those in NVRTC's folder.
 * Without them cuDNN has no engines that need run-time compilation. */
static void open_nvrtc_builtins(void *nvrtc, int version)
{
	char folder[PATH_MAX], path[PATH_MAX + 64];

	if (dlinfo(nvrtc, RTLD_DI_ORIGIN, folder))
		return;
	snprintf(path, sizeof(path), "%s/libnvrtc-builtins.so.%d.%d", folder, version / 10000, version / 100 % 100);
	dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The version that the library reports. */
static int read_library_version(const struct cuda_calls *c, enum cuda_library which)
{
	int major = 0, minor = 0;

	(void)c;
	switch (which) {
#ifdef HAVE_NVRTC
	case CUDA_NVRTC:
		c->nvrtcVersion(&major, &minor);
		break;
#endif
#ifdef HAVE_CUBLASLT
	case CUDA_CUBLASLT:
		return (int)c->cublasLtGetVersion();
#endif
#ifdef HAVE_CUDNN
	case CUDA_CUDNN:
		return (int)c->cudnnGetVersion();
#endif
#ifdef HAVE_NCCL
	case CUDA_NCCL:
		c->ncclGetVersion(&major);
		return major;
#endif
	default:
		break;
	}
	return 10000 * major + 100 * minor;
}

int cuda_calls_open(struct cuda_calls *c, enum cuda_library which, struct err *err)
{
	const struct cuda_library_file *l = &libraries[which];
	struct cuda_calls found = *c;
	void *handle = NULL;
	char version[64];
	int rc;

	if (c->version[which])
		return 0;
	if (!is_built_with(which))
		return err_set(err, ERR_UNSUPPORTED, "%s is not supported by this build: its header was missing",
			       l->name);
	rc = open_library(l, &handle, err);
	if (!rc)
		rc = load_library_calls(&found, which, handle, err);
	if (rc)
		return rc;
	found.version[which] = read_library_version(&found, which);
	cuda_library_version(&found, which, version, sizeof(version));
	if (found.version[which] < l->least)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s is too old: install %d.%d or newer (pip install %s provides it)", version,
			       l->least / 10000, l->least / 100 % 100, l->package);
	if (which == CUDA_NVRTC)
		open_nvrtc_builtins(handle, found.version[which]);
	*c = found;
	return 0;
}
