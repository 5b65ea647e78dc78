/* SPDX-License-Identifier: Apache-2.0 */
/* onednn.c: opens oneDNN, and redirects its calls of operator new, operator delete, posix_memalign and free to
 * onednn_memory.c by changing that library's import table. The rest of the process, including other C++ libraries and
 * preloaded allocators, is unchanged. */
#include "trainer/backends/cpu/onednn.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "trainer/backends/cpu/onednn_lib.h"

#define PAGE ((uintptr_t)4096)

static void *(*system_new)(size_t);
static void (*system_delete)(void *);
static void (*system_sized_delete)(void *, size_t);
static int (*system_memalign)(void **, size_t, size_t);
static void (*system_free)(void *);

static void *our_new(size_t bytes)
{
	void *p = dnn_memory_piece(bytes);

	return p ? p : system_new(bytes);
}

static void our_delete(void *p)
{
	if (!dnn_memory_give_piece(p))
		system_delete(p);
}

static void our_sized_delete(void *p, size_t bytes)
{
	if (!dnn_memory_give_piece(p))
		system_sized_delete(p, bytes);
}

static int our_memalign(void **ret, size_t align, size_t bytes)
{
	void *p = align <= PAGE ? dnn_memory_block(bytes) : NULL;

	if (!p)
		return system_memalign(ret, align, bytes);
	*ret = p;
	return 0;
}

static void our_free(void *p)
{
	if (!p || !dnn_memory_give_block(p))
		system_free(p);
}

enum { DELETE, SIZED_DELETE };

/* Functions that free are listed before those that allocate. Libraries since C++14 import the sized delete, older ones
 * the other one. */
static const struct import {
	const char *name;
	void *ours;
	void *system; /* address of the pointer that keeps the original function */
} imports[] = {
	[DELETE] = { "_ZdlPv", (void *)our_delete, (void *)&system_delete },
	[SIZED_DELETE] = { "_ZdlPvm", (void *)our_sized_delete, (void *)&system_sized_delete },
	{ "free", (void *)our_free, (void *)&system_free },
	{ "_Znwm", (void *)our_new, (void *)&system_new },
	{ "posix_memalign", (void *)our_memalign, (void *)&system_memalign },
};

#define IMPORTS (sizeof(imports) / sizeof(imports[0]))

struct dnn_image {
	uintptr_t code;			  /* an address in it */
	uintptr_t base, relro, relro_end; /* pages that became read-only after linking */
	const ElfW(Dyn) * dynamic;	  /* NULL: not found */
	void **slots[IMPORTS];
};

static int find_dnn_segments(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct dnn_image *l = arg, found = { .code = l->code, .base = info->dlpi_addr };
	bool holds = false;

	(void)bytes;
	for (const ElfW(Phdr) *p = info->dlpi_phdr; p < info->dlpi_phdr + info->dlpi_phnum; p++) {
		const uintptr_t begin = found.base + p->p_vaddr, end = begin + p->p_memsz;

		if (p->p_type == PT_LOAD && begin <= l->code && l->code < end)
			holds = true;
		if (p->p_type == PT_DYNAMIC)
			found.dynamic = (const ElfW(Dyn) *)begin;
		if (p->p_type == PT_GNU_RELRO) {
			found.relro = begin / PAGE * PAGE;
			found.relro_end = end / PAGE * PAGE;
		}
	}
	if (holds)
		*l = found;
	return holds;
}

/* Returns the value of a tag of the dynamic section. */
static uintptr_t read_dynamic_tag(const struct dnn_image *l, ElfW(Sxword) tag)
{
	const ElfW(Dyn) *d = l->dynamic;

	while (d->d_tag != DT_NULL && d->d_tag != tag)
		d++;
	return d->d_tag == tag ? d->d_un.d_ptr : 0;
}

/* Returns the address under a tag; one that the loader did not relocate is still an offset. */
static uintptr_t read_dynamic_address(const struct dnn_image *l, ElfW(Sxword) tag)
{
	const uintptr_t at = read_dynamic_tag(l, tag);

	return at && at < l->base ? l->base + at : at;
}

/* Ways of freeing that are not redirected: memory from the pool must not reach them. delete[] frees only what new[]
 * returned, which the pool does not serve. */
static bool frees_past_pool(const char *name)
{
	const bool deletes = strncmp(name, "_Zdl", 4) == 0;

	return (deletes && strcmp(name, imports[DELETE].name) != 0 && strcmp(name, imports[SIZED_DELETE].name) != 0) ||
	       strcmp(name, "realloc") == 0;
}

/* Finds the imports in a table of relocations. Returns false if the address of one is stored: it may then be called
 * from anywhere, and memory may be freed without the pool. */
static bool scan_relocations(struct dnn_image *l, ElfW(Sxword) table, ElfW(Sxword) bytes)
{
	const ElfW(Rela) *r = (const ElfW(Rela) *)read_dynamic_address(l, table);
	const ElfW(Rela) *end = (const ElfW(Rela) *)((uintptr_t)r + read_dynamic_tag(l, bytes));
	const ElfW(Sym) *symbols = (const ElfW(Sym) *)read_dynamic_address(l, DT_SYMTAB);
	const char *names = (const char *)read_dynamic_address(l, DT_STRTAB);

	for (; r < end; r++) {
		const char *name = names + symbols[ELF64_R_SYM(r->r_info)].st_name;

		if (frees_past_pool(name))
			return false;
		for (size_t i = 0; i < IMPORTS; i++)
			if (strcmp(name, imports[i].name) == 0) {
				if (ELF64_R_TYPE(r->r_info) != R_X86_64_JUMP_SLOT)
					return false;
				l->slots[i] = (void **)(l->base + r->r_offset);
			}
	}
	return true;
}

/* For libraries that were opened with all functions bound, as modules are. */
static bool find_import_slots(struct dnn_image *l)
{
	if (!read_dynamic_address(l, DT_SYMTAB) || !read_dynamic_address(l, DT_STRTAB) ||
	    read_dynamic_tag(l, DT_PLTREL) != DT_RELA || !scan_relocations(l, DT_JMPREL, DT_PLTRELSZ) ||
	    !scan_relocations(l, DT_RELA, DT_RELASZ))
		return false;
	for (size_t i = SIZED_DELETE + 1; i < IMPORTS; i++)
		if (!l->slots[i])
			return false;
	return l->slots[DELETE] || l->slots[SIZED_DELETE];
}

static bool protect_relro(const struct dnn_image *l, int how)
{
	return l->relro_end <= l->relro || mprotect((void *)l->relro, l->relro_end - l->relro, how) == 0;
}

/* If the module were unloaded, the library would lack these functions. */
static bool pin_this_module(void)
{
	Dl_info self;

	return dladdr((void *)our_free, &self) && dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* The library's log messages use strings, which the C++ library frees itself. */
static bool is_dnn_verbose(void)
{
	return getenv("DNNL_VERBOSE") || getenv("ONEDNN_VERBOSE");
}

/* Redirects the allocations of the library that contains `code` to this module. Returns false if that is not possible;
 * the library then keeps using the system's allocator. The first call decides for the process; this module then stays
 * loaded. */
static bool dnn_memory_serve(const void *code)
{
	static bool serves;
	struct dnn_image l = { .code = (uintptr_t)code };

	if (serves)
		return true;
	dl_iterate_phdr(find_dnn_segments, &l);
	if (is_dnn_verbose() || !l.dynamic || !find_import_slots(&l) || !pin_this_module() ||
	    !protect_relro(&l, PROT_READ | PROT_WRITE))
		return false;
	for (size_t i = 0; i < IMPORTS; i++)
		if (l.slots[i]) {
			memcpy(imports[i].system, l.slots[i], sizeof(void *));
			memcpy(l.slots[i], &imports[i].ours, sizeof(void *));
		}
	serves = true;
	return protect_relro(&l, PROT_READ);
}

void dnn_version(char *text, size_t n)
{
	const dnnl_version_t *v = dnnl_version();

	snprintf(text, n, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

int dnn_new(struct dnn **ret, struct err *err)
{
	struct dnn *d = calloc(1, sizeof(*d));
	dnnl_status_t st;

	if (!d)
		return err_set(err, ERR_NOMEM, "oneDNN: out of memory");
	dnn_memory_serve((const void *)dnnl_primitive_execute);
	/* the library's cache changes the order in which it lists implementations */
	dnnl_set_primitive_cache_capacity(0);
	st = dnnl_engine_create(&d->engine, dnnl_cpu, 0);
	if (st == dnnl_success)
		st = dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags);
	if (st == dnnl_success)
		st = dnnl_primitive_attr_create(&d->attr);
	if (st == dnnl_success)
		st = dnnl_primitive_attr_set_scratchpad_mode(d->attr, dnnl_scratchpad_mode_user);
	if (st == dnnl_success) {
		*ret = d;
		return 0;
	}
	dnn_free(d);
	return dnn_fail(err, "opening the processor as a device", st);
}

void dnn_plan_only(struct dnn *d)
{
	d->plans = true;
}

void dnn_free(struct dnn *d)
{
	if (!d)
		return;
	if (d->attr)
		dnnl_primitive_attr_destroy(d->attr);
	if (d->stream)
		dnnl_stream_destroy(d->stream);
	if (d->engine)
		dnnl_engine_destroy(d->engine);
	free(d);
}
