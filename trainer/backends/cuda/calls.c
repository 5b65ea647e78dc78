/* calls.c: see calls.h. */
#include "trainer/backends/cuda/calls.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DPT_CUDA_FOLDERS
#define DPT_CUDA_FOLDERS ""
#endif

#define CALL(id, result, name, prototype)                                                                           \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), result prototype), #name " has another header");
#include "trainer/backends/cuda/calls.def"

struct library {
	const char *name, *file;
	int least;
	const char *package;
};

static const struct library libraries[CUDA_LIBRARIES] = {
#define LIBRARY(id, name, file, least, package) [CUDA_##id] = { name, file, least, package },
#include "trainer/backends/cuda/calls.def"
};

/* A call's place in struct cuda_calls. */
struct call {
	enum cuda_library library;
	const char *name;
	size_t offset;
};

static const struct call calls[] = {
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

/* Headers of a library come with its calls. */
static bool built_with(enum cuda_library which)
{
	for (const struct call *c = calls; c->name; c++)
		if (c->library == which)
			return true;
	return false;
}

struct search {
	const char *file;
	void *handle;
	char why[1024]; /* what the loader said of a file that is there */
};

static void try_file(struct search *s, const char *path)
{
	s->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!s->handle && !s->why[0])
		snprintf(s->why, sizeof(s->why), "%s", dlerror());
}

/* Below a folder: the file itself, or where the wheels keep it. */
static void try_folder(struct search *s, const char *folder, size_t length)
{
	static const char *const places[] = { "", "/cudnn/lib", "/cu13/lib", "/nccl/lib" };
	char path[4096];

	for (size_t i = 0; !s->handle && i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(path, sizeof(path), "%.*s%s/%s", (int)length, folder, places[i], s->file);

		if (n < (int)sizeof(path) && access(path, F_OK) == 0)
			try_file(s, path);
	}
}

static void try_folders(struct search *s, const char *folders)
{
	while (!s->handle && folders && *folders) {
		size_t n = strcspn(folders, ":");

		if (n)
			try_folder(s, folders, n);
		folders += n + (folders[n] == ':');
	}
}

static int open_library(const struct library *l, void **ret, struct err *err)
{
	struct search s = { .file = l->file };

	try_folders(&s, getenv("DPTRAIN_CUDA_LIBS"));
	try_folders(&s, DPT_CUDA_FOLDERS);
	if (!s.handle && s.why[0])
		return err_set(err, ERR_UNSUPPORTED, "%s does not load: %s", l->name, s.why);
	if (!s.handle)
		s.handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
	if (!s.handle)
		return err_set(err, ERR_NOENT,
			       "%s (%s) is not found; name its folder in DPTRAIN_CUDA_LIBS (pip install %s brings it)",
			       l->name, l->file, l->package);
	*ret = s.handle;
	return 0;
}

static int find_calls(struct cuda_calls *c, enum cuda_library which, void *handle, struct err *err)
{
	for (const struct call *k = calls; k->name; k++) {
		void *address = k->library == which ? dlsym(handle, k->name) : NULL;

		if (k->library != which)
			continue;
		if (!address)
			return err_set(err, ERR_UNSUPPORTED, "%s (%s) has no %s: it is of another version than %s",
				       libraries[which].name, libraries[which].file, k->name, libraries[which].package);
		memcpy((char *)c + k->offset, &address, sizeof(address));
	}
	return 0;
}

/* NVRTC asks the loader for its builtins by name, which knows them once they are open: those beside it. Where they are
 * missing cuDNN has no engine for what it compiles. */
static void open_builtins(void *nvrtc, int version)
{
	char folder[PATH_MAX], path[PATH_MAX + 64];

	if (dlinfo(nvrtc, RTLD_DI_ORIGIN, folder))
		return;
	snprintf(path, sizeof(path), "%s/libnvrtc-builtins.so.%d.%d", folder, version / 10000, version / 100 % 100);
	dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* As the library itself says it. */
static int version_of(const struct cuda_calls *c, enum cuda_library which)
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
	const struct library *l = &libraries[which];
	struct cuda_calls found = *c;
	void *handle = NULL;
	char version[64];
	int rc;

	if (c->version[which])
		return 0;
	if (!built_with(which))
		return err_set(err, ERR_UNSUPPORTED, "%s is left out: its header was missing when this was built",
			       l->name);
	rc = open_library(l, &handle, err);
	if (!rc)
		rc = find_calls(&found, which, handle, err);
	if (rc)
		return rc;
	found.version[which] = version_of(&found, which);
	cuda_library_version(&found, which, version, sizeof(version));
	if (found.version[which] < l->least)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s is too old: %d.%d or newer is needed (pip install %s brings it)", version,
			       l->least / 10000, l->least / 100 % 100, l->package);
	if (which == CUDA_NVRTC)
		open_builtins(handle, found.version[which]);
	*c = found;
	return 0;
}
