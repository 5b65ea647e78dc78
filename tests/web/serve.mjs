// SPDX-License-Identifier: Apache-2.0
// Starts a server with the twelve runs for tests: `dptrack serve` on a folder of event files if that program is built
// with the page, otherwise the stand-in of devserver.mjs (DPT_STANDIN=1 forces it).
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import * as standin from './devserver.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
export const builddir = path.resolve(process.env.builddir ?? path.join(here, '../../build'));
export const srcdir = path.resolve(process.env.srcdir ?? path.join(here, '../..'));
const program = path.join(builddir, 'dptrack');
const START_MS = 20000;

/** Folder of the built page. */
export const dist = [path.join(builddir, 'web/ui/dist'), path.join(srcdir, 'web/ui/dist')]
	.find((d) => existsSync(path.join(d, 'index.html')));

export const real = existsSync(program) && !process.env.DPT_STANDIN;

/** Makes a REST v1 call that must succeed; returns its JSON. */
export async function ask(url, address, body, method = 'POST') {
	const r = await fetch(`${url}api/v1/${address}`, { method, headers: { 'content-type': 'application/json' },
		body: body && JSON.stringify(body) });
	if (!r.ok) throw new Error(`${method} ${address}: ${r.status} ${await r.text()}`);
	return r.json();
}

/** Runs `dptrack serve` on a folder; resolves to {url, logdir, said, close}. */
export async function serveFolder(logdir, port = 0, more = []) {
	const child = spawn(program, ['serve', '--logdir', logdir, '--port', String(port), ...more],
		{ stdio: ['ignore', 'pipe', 'pipe'] });
	let said = '';
	const url = await new Promise((done, fail) => {
		const late = setTimeout(() => fail(new Error('dptrack serve printed no address: ' + said)), START_MS);
		const take = (d) => {
			said += d;
			const m = /^dptrack: serving (http:\S+)$/m.exec(said);
			if (m) {
				clearTimeout(late);
				done(m[1].replace(/\/?$/, '/'));
			}
		};
		child.stdout.on('data', take);
		child.stderr.on('data', take);
		child.on('exit', (code) => fail(new Error(`dptrack serve ended with ${code}: ${said}`)));
	});
	return {
		url, logdir, said: () => said,
		close: () => new Promise((done) => {
			child.once('exit', done);
			child.kill('SIGTERM');
		}),
	};
}

function temporary() {
	return mkdtempSync(path.join(tmpdir(), 'dptrack-web-'));
}

/** Writes the runs as event files, or through libdptrack with the program that DPT_RECORDER names. */
export function writeTwelve(logdir) {
	const recorder = process.env.DPT_RECORDER;
	const lines = execFileSync('python3',
		[path.join(here, 'twelve.py'), ...(recorder ? ['--record'] : ['--events', logdir])],
		{ maxBuffer: 64 << 20 });
	if (recorder) execFileSync(recorder, [logdir], { input: lines });
}

/** A server with the twelve runs, or with none. */
export async function serve({ empty = false } = {}) {
	if (!real) return standin.start({ dist, all: empty ? [] : standin.load() });
	const logdir = temporary();
	if (!empty) writeTwelve(logdir);
	const s = await serveFolder(logdir);
	return { ...s, close: async () => {
		await s.close();
		rmSync(logdir, { recursive: true, force: true });
	} };
}
