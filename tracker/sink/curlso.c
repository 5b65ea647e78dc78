/* curlso.c: dlopen of libcurl. */
#include "tracker/sink/curlso.h"

#include <dlfcn.h>
#include <string.h>

static int symbol(void *so, const char *name, void *to, struct err *err)
{
	void *at = dlsym(so, name);

	if (!at)
		return err_set(err, ERR_UNSUPPORTED, "libcurl.so.4 lacks %s", name);
	memcpy(to, &at, sizeof(at));
	return 0;
}

int curlso_load(struct curlso *ret, struct err *err)
{
	struct curlso c;
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{ "curl_global_init", &c.global_init },       { "curl_easy_init", &c.easy_init },
		{ "curl_easy_setopt", &c.easy_setopt },       { "curl_easy_perform", &c.easy_perform },
		{ "curl_easy_getinfo", &c.easy_getinfo },     { "curl_easy_strerror", &c.easy_strerror },
		{ "curl_easy_reset", &c.easy_reset },         { "curl_easy_cleanup", &c.easy_cleanup },
		{ "curl_slist_append", &c.slist_append },     { "curl_slist_free_all", &c.slist_free_all },
	};
	void *so = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!so)
		return err_set(err, ERR_UNSUPPORTED, "HTTP needs libcurl (Debian: libcurl4): %s", dlerror());
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (symbol(so, wanted[i].name, wanted[i].to, err))
			return ERR_UNSUPPORTED;
	if (c.global_init(CURL_GLOBAL_DEFAULT))
		return err_set(err, ERR_UNSUPPORTED, "libcurl cannot be initialised");
	*ret = c;
	return 0;
}
