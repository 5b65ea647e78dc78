/* encode_documents.c: a ring of jobs. The caller fills jobs with text in order. Threads encode the waiting jobs. The
 * caller writes a job's tokens before it fills the job again. */
#include "trainer/data/corpus/encode_documents.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracker/base/buf.h"

#define JOB_BYTES ((size_t)1 << 20) /* of text: a job this large is submitted */
#define TEXT_MAX ((size_t)1 << 30)
#define TOKENS_MAX ((size_t)1 << 33)
#define THREADS_MAX 256

struct encoder_piece {
	enum split split;
	bool begins, ends;
	size_t n;	 /* bytes of text */
	size_t n_tokens; /* set by encoding */
};

enum job_state { JOB_EMPTY, JOB_WAITING, JOB_DONE };

struct encoder_job {
	enum job_state state;
	struct buf text, tokens, pieces; /* bytes; int32_t; struct encoder_piece; concatenated */
	int rc;
	struct err err;
};

struct encode {
	struct encode_opts o;
	struct encoder_job *job; /* a ring of n */
	int n;
	int filling;	   /* job that the caller fills */
	int next, waiting; /* first waiting job, and the number of waiting jobs */
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	pthread_t thread[THREADS_MAX];
	int n_threads;
};

static int append_job_tokens(void *user, const int32_t *tokens, size_t n, struct err *err)
{
	struct buf *to = user;

	buf_add(to, tokens, n * sizeof(*tokens));
	return buf_failed(to) ? err_set(err, ERR_NOMEM, "out of memory: tokens of a text") : 0;
}

static int run_encoder_job(const struct encode *e, struct encoder_job *j, struct err *err)
{
	const struct tokenizer_sink sink = { append_job_tokens, &j->tokens };
	struct encoder_piece *piece = (struct encoder_piece *)(void *)j->pieces.data;
	size_t n = j->pieces.len / sizeof(*piece), at = 0, before;
	int32_t separator = tokenizer_separator(e->o.tokenizer);
	int rc = 0;

	for (size_t i = 0; !rc && i < n; at += piece[i++].n) {
		before = j->tokens.len;
		if (piece[i].begins && separator >= 0) /* in front of each text, as GPT-2 was trained */
			rc = append_job_tokens(&j->tokens, &separator, 1, err);
		if (!rc)
			rc = tokenizer_encode(e->o.tokenizer, j->text.data + at, piece[i].n, &sink, err);
		piece[i].n_tokens = (j->tokens.len - before) / sizeof(int32_t);
	}
	return rc;
}

/* Thread: encodes waiting jobs until e->stop. */
static void *run_encoder_thread(void *arg)
{
	struct encode *e = arg;

	pthread_mutex_lock(&e->lock);
	while (!e->stop) {
		struct encoder_job *j = &e->job[e->next];

		if (!e->waiting) {
			pthread_cond_wait(&e->work, &e->lock);
			continue;
		}
		e->next = (e->next + 1) % e->n;
		e->waiting--;
		pthread_mutex_unlock(&e->lock);
		j->rc = run_encoder_job(e, j, &j->err);
		pthread_mutex_lock(&e->lock);
		j->state = JOB_DONE;
		pthread_cond_signal(&e->done);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

int encode_new(struct encode **ret, const struct encode_opts *o, struct err *err)
{
	struct encode *e = calloc(1, sizeof(*e));
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int most = o->threads ? o->threads : cores < 1 ? 1 : (int)cores;

	if (!e)
		return err_set(err, ERR_NOMEM, "out of memory");
	e->o = *o;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->work, NULL);
	pthread_cond_init(&e->done, NULL);
	most = most > THREADS_MAX ? THREADS_MAX : most;
	e->n = 2 * most + 1;
	e->job = calloc((size_t)e->n, sizeof(*e->job));
	for (int i = 0; e->job && i < e->n; i++) {
		buf_init(&e->job[i].text, TEXT_MAX);
		buf_init(&e->job[i].tokens, TOKENS_MAX);
		buf_init(&e->job[i].pieces, TEXT_MAX);
	}
	while (e->job && e->n_threads < most && !pthread_create(&e->thread[e->n_threads], NULL, run_encoder_thread, e))
		e->n_threads++;
	if (!e->n_threads) {
		encode_free(e);
		return err_set(err, ERR_NOMEM, "cannot start a thread to encode texts");
	}
	*ret = e;
	return 0;
}

void encode_free(struct encode *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_cond_broadcast(&e->work);
	pthread_mutex_unlock(&e->lock);
	for (int i = 0; i < e->n_threads; i++)
		pthread_join(e->thread[i], NULL);
	for (int i = 0; e->job && i < e->n; i++) {
		buf_done(&e->job[i].text);
		buf_done(&e->job[i].tokens);
		buf_done(&e->job[i].pieces);
	}
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->work);
	pthread_cond_destroy(&e->done);
	free(e->job);
	free(e);
}

static int write_job_tokens(const struct encode *e, const struct encoder_job *j, struct err *err)
{
	const struct encoder_piece *piece = (const struct encoder_piece *)(const void *)j->pieces.data;
	const int32_t *tokens = (const int32_t *)(const void *)j->tokens.data;
	int rc = j->rc;

	if (rc)
		return err_set(err, rc, "%s", j->err.text);
	for (size_t i = 0; !rc && i < j->pieces.len / sizeof(*piece); tokens += piece[i++].n_tokens) {
		struct token_writer *to = e->o.to[piece[i].split];

		rc = token_writer_add(to, tokens, piece[i].n_tokens, err);
		if (!rc && piece[i].ends)
			rc = token_writer_end(to, err);
	}
	return rc;
}

/* Waits until a job is encoded, writes its tokens, and empties it. */
static int drain_encoder_job(struct encode *e, struct encoder_job *j, struct err *err)
{
	int rc;

	pthread_mutex_lock(&e->lock);
	while (j->state == JOB_WAITING)
		pthread_cond_wait(&e->done, &e->lock);
	pthread_mutex_unlock(&e->lock);
	rc = j->state == JOB_DONE ? write_job_tokens(e, j, err) : 0;
	buf_reset(&j->text);
	buf_reset(&j->tokens);
	buf_reset(&j->pieces);
	j->state = JOB_EMPTY;
	return rc;
}

/* Submits the job being filled, then drains the oldest one for reuse. */
static int submit_encoder_job(struct encode *e, struct err *err)
{
	pthread_mutex_lock(&e->lock);
	e->job[e->filling].state = JOB_WAITING;
	e->waiting++;
	pthread_cond_signal(&e->work);
	pthread_mutex_unlock(&e->lock);
	e->filling = (e->filling + 1) % e->n;
	return drain_encoder_job(e, &e->job[e->filling], err);
}

int encode_add(struct encode *e, const struct encode_piece *p, struct err *err)
{
	struct encoder_job *j = &e->job[e->filling];
	struct encoder_piece piece = { .split = p->split, .begins = p->begins, .ends = p->ends, .n = p->n };

	buf_add(&j->text, p->text, p->n);
	buf_add(&j->pieces, &piece, sizeof(piece));
	if (buf_failed(&j->text) || buf_failed(&j->pieces))
		return err_set(err, ERR_NOMEM, "out of memory: %zu bytes of text", p->n);
	return j->text.len < JOB_BYTES ? 0 : submit_encoder_job(e, err);
}

int encode_finish(struct encode *e, struct err *err)
{
	int rc = submit_encoder_job(e, err);

	for (int i = 1; !rc && i < e->n; i++)
		rc = drain_encoder_job(e, &e->job[(e->filling + i) % e->n], err);
	return rc;
}
