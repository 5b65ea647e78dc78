/* answer.c: expat's callbacks. */
#include "tracker/object/answer.h"

#include <stdio.h>
#include <string.h>

#include "tracker/base/buf.h"
#include "tracker/object/expatso.h"
#include "tracker/object/object.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define PATH_BYTES 256
#define TEXT_MAX ((size_t)64 << 10)

/* Between two words in plain text, so that an error has its name without a parser. */
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

struct reading {
	struct expatso so;
	const struct answer_reader *to;
	XML_Parser parser;
	char path[PATH_BYTES];
	size_t n;
	struct buf text;
	int rc;
	struct err *err;
};

static void stop(struct reading *r, int rc)
{
	r->rc = r->rc ? r->rc : rc;
	r->so.StopParser(r->parser, XML_FALSE);
}

static void on_start(void *user, const char *name, const char **attributes)
{
	struct reading *r = user;
	size_t n = strlen(name);

	(void)attributes;
	if (r->n + n + 2 > sizeof(r->path)) {
		stop(r, err_set(r->err, ERR_CORRUPT, "the answer's elements lie too deep"));
		return;
	}
	if (r->n)
		r->path[r->n++] = '/';
	memcpy(r->path + r->n, name, n + 1);
	r->n += n;
	buf_reset(&r->text);
}

static void on_text(void *user, const char *text, int n)
{
	struct reading *r = user;

	buf_add(&r->text, text, (size_t)n);
	if (buf_failed(&r->text))
		stop(r, err_set(r->err, ERR_CORRUPT, "the answer's text in %s is too long", r->path));
}

static void on_end(void *user, const char *name)
{
	struct reading *r = user;
	int rc = r->to->element(r->to->user, r->path, r->text.data && r->text.len ? r->text.data : "");

	r->n -= strlen(name);
	r->n -= r->n > 0;
	r->path[r->n] = '\0';
	buf_reset(&r->text);
	if (rc)
		stop(r, rc);
}

static void on_doctype(void *user, const char *name, const char *system, const char *public, int internal)
{
	struct reading *r = user;

	(void)name, (void)system, (void)public, (void)internal;
	stop(r, err_set(r->err, ERR_CORRUPT, "the answer brings a document type of its own"));
}

void answer_prepare(void)
{
	struct expatso so;

	expatso_load(&so, NULL);
}

int answer_read(const char *xml, size_t n, const struct answer_reader *to, struct err *err)
{
	struct reading r = { .to = to, .err = err };
	int rc = expatso_load(&r.so, err);

	if (rc)
		return rc;
	r.parser = r.so.ParserCreate(NULL);
	if (!r.parser)
		return err_set(err, ERR_NOMEM, "out of memory");
	buf_init(&r.text, TEXT_MAX);
	r.so.SetUserData(r.parser, &r);
	r.so.SetElementHandler(r.parser, on_start, on_end);
	r.so.SetCharacterDataHandler(r.parser, on_text);
	r.so.SetStartDoctypeDeclHandler(r.parser, on_doctype);
	if (r.so.Parse(r.parser, xml, (int)n, 1) != XML_STATUS_OK && !r.rc)
		r.rc = err_set(err, ERR_CORRUPT, "the answer is no XML: %s",
			       r.so.ErrorString(r.so.GetErrorCode(r.parser)));
	r.so.ParserFree(r.parser);
	buf_done(&r.text);
	return r.rc;
}
