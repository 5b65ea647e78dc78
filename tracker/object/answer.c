/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c: parses answers with expat, which is loaded on demand. */
#include "tracker/object/client.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tracker/base/library.h"

#define EXPATSO_FUNCTIONS(X)                                                                             \
	X(ErrorString) X(GetErrorCode) X(Parse) X(ParserCreate) X(ParserFree) X(SetCharacterDataHandler) \
	X(SetElementHandler) X(SetStartDoctypeDeclHandler) X(SetUserData) X(StopParser)

struct expatso {
#define EXPATSO_MEMBER(name) __typeof__(&XML_##name) name;
	EXPATSO_FUNCTIONS(EXPATSO_MEMBER)
#undef EXPATSO_MEMBER
};

/* Returns 0, or ERR_UNSUPPORTED with the loader's reason. The library stays loaded until the process ends. */
static int expatso_load(struct expatso *ret, struct err *err)
{
#define EXPATSO_FUNCTION(name) { "XML_" #name, &ret->name },
	const struct library_function wanted[] = { EXPATSO_FUNCTIONS(EXPATSO_FUNCTION) };
#undef EXPATSO_FUNCTION
	const struct library library = { "libexpat.so.1", "object stores need expat (Debian: libexpat1)" };

	return library_load(&library, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define PATH_BYTES 256
#define TEXT_MAX ((size_t)64 << 10)

/* Found by search in the plain text, so that errors have a name without a parser. */
void object_code(const char *xml, size_t n, char ret[OBJECT_CODE_BYTES])
{
	const char *at = memmem(xml, n, "<Code>", 6), *end;

	ret[0] = '\0';
	if (!at)
		return;
	at += 6;
	end = memchr(at, '<', n - (size_t)(at - xml));
	if (end && end - at < OBJECT_CODE_BYTES && strspn(at, LETTERS) >= (size_t)(end - at))
		snprintf(ret, OBJECT_CODE_BYTES, "%.*s", (int)(end - at), at);
}

struct answer_parse {
	struct expatso so;
	const struct answer_reader *to;
	XML_Parser parser;
	char path[PATH_BYTES];
	size_t n;
	struct buf text;
	int rc;
	struct err *err;
};

static void stop_parser(struct answer_parse *r, int rc)
{
	r->rc = r->rc ? r->rc : rc;
	r->so.StopParser(r->parser, XML_FALSE);
}

static void open_element(void *user, const char *name, const char **attributes)
{
	struct answer_parse *r = user;
	size_t n = strlen(name);

	(void)attributes;
	if (r->n + n + 2 > sizeof(r->path)) {
		stop_parser(r, err_set(r->err, ERR_CORRUPT, "the answer's elements are nested too deeply"));
		return;
	}
	if (r->n)
		r->path[r->n++] = '/';
	memcpy(r->path + r->n, name, n + 1);
	r->n += n;
	buf_reset(&r->text);
}

static void append_element_text(void *user, const char *text, int n)
{
	struct answer_parse *r = user;

	buf_add(&r->text, text, (size_t)n);
	if (buf_failed(&r->text))
		stop_parser(r, err_set(r->err, ERR_CORRUPT, "the answer's text in %s is too long", r->path));
}

static void close_element(void *user, const char *name)
{
	struct answer_parse *r = user;
	int rc = r->to->element(r->to->user, r->path, r->text.data && r->text.len ? r->text.data : "");

	r->n -= strlen(name);
	r->n -= r->n > 0;
	r->path[r->n] = '\0';
	buf_reset(&r->text);
	if (rc)
		stop_parser(r, rc);
}

static void refuse_doctype(void *user, const char *name, const char *system, const char *public, int internal)
{
	struct answer_parse *r = user;

	(void)name, (void)system, (void)public, (void)internal;
	stop_parser(r, err_set(r->err, ERR_CORRUPT, "the answer declares a document type"));
}

int answer_prepare(struct err *err)
{
	struct expatso so;
	int rc = expatso_load(&so, err);

#ifndef STATIC_PROGRAM
	rc = 0;
#endif
	return rc;
}

int answer_read(const char *xml, size_t n, const struct answer_reader *to, struct err *err)
{
	struct answer_parse r = { .to = to, .err = err };
	int rc = expatso_load(&r.so, err);

	if (rc)
		return rc;
	r.parser = r.so.ParserCreate(NULL);
	if (!r.parser)
		return err_nomem(err, NULL);
	buf_init(&r.text, TEXT_MAX);
	r.so.SetUserData(r.parser, &r);
	r.so.SetElementHandler(r.parser, open_element, close_element);
	r.so.SetCharacterDataHandler(r.parser, append_element_text);
	r.so.SetStartDoctypeDeclHandler(r.parser, refuse_doctype);
	if (r.so.Parse(r.parser, xml, (int)n, 1) != XML_STATUS_OK && !r.rc)
		r.rc = err_set(err, ERR_CORRUPT, "the answer is not XML: %s",
			       r.so.ErrorString(r.so.GetErrorCode(r.parser)));
	r.so.ParserFree(r.parser);
	buf_done(&r.text);
	return r.rc;
}
