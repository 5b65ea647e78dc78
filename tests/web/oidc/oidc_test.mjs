// SPDX-License-Identifier: Apache-2.0
// Persons sign in by a provider, through a proxy and below a path: what they may do follows from their groups, tokens
// that must not be believed are refused with one line, sessions and programs end when the person is revoked.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac, createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { clean, launch, until } from '../browser.mjs';
import { b64, Browser, freePort, makeKey, parts, sign, startProvider, startProxy } from './oidc_provider.mjs';
import { builddir, serveFolder, srcdir, writeTwelve } from '../serve.mjs';

const WAIT = { timeout: 30000 };
const SOON_MS = 2000;
const program = path.join(builddir, 'dptrack');
const here = {};

/** Runs a program while the provider and the proxy of this process go on; resolves to {status, out, said}. */
function run(file, words, env = process.env, late = 60000) {
	const child = spawn(file, words, { stdio: ['ignore', 'pipe', 'pipe'], env, timeout: late });
	const r = { out: '', said: '' };
	child.stdout.on('data', (d) => { r.out += d; });
	child.stderr.on('data', (d) => { r.said += d; });
	return new Promise((done) => child.on('close', (status) => done({ ...r, status })));
}

async function dptrack(...words) {
	const r = await run(program, [...words, '--logdir', here.logdir]);
	assert.equal(r.status, 0, r.said);
	return r.out;
}

/** Writes a configuration; what is undefined is left out. */
function configure(name, providers, url) {
	const file = path.join(here.folder, name);
	writeFileSync(file, JSON.stringify({ url, providers }));
	return file;
}

const company = (more = {}) => ({ name: 'company', label: 'Company <&>', issuer: here.provider.issuer,
	client_id: 'dptrack', client_secret_file: path.join(here.folder, 'secret'),
	grants: { ml: 'write', guests: 'read', chiefs: 'admin', open: 'fash*=read,none*=none',
		makers: 'fash*=write,new*=write+create' }, ...more });

before(async () => {
	here.folder = mkdtempSync(path.join(tmpdir(), 'dptrack-oidc-'));
	here.logdir = path.join(here.folder, 'runs');
	writeTwelve(here.logdir);
	const port = await freePort(), url = `http://127.0.0.1:${port}/track/`;
	here.provider = await startProvider({ redirects: [`${url}login/company/callback`] });
	here.lean = await startProvider({ redirects: [`${url}login/lean/callback`], lean: true });
	writeFileSync(path.join(here.folder, 'secret'), here.provider.secret + '\n', { mode: 0o600 });
	const lean = company({ name: 'lean', label: 'Lean', issuer: here.lean.issuer });
	here.config = configure('oidc.json', [company(), lean], url);
	// DPTRACK_DB (tests/team/sign_in.py): two processes, which answer in turn
	here.servers = [];
	for (let i = 0; i < (process.env.DPTRACK_DB ? 2 : 1); i++)
		here.servers.push(await serveFolder(here.logdir, 0, ['--behind-proxy', '--oidc', here.config]));
	here.proxy = await startProxy(port, here.servers.map((s) => s.url));
	here.url = here.proxy.url;
	Object.assign(here.provider.groups, { bea: ['ml', 'other'], cid: ['guests'], dan: ['unknown'], eve: ['ml'] });
	here.lean.groups.bea = ['guests'];
	here.browser = await launch();
});

after(async () => {
	await here.browser?.close();
	await here.proxy?.close();
	for (const s of here.servers ?? []) await s.close();
	await here.provider?.close();
	await here.lean?.close();
	rmSync(here.folder, { recursive: true, force: true });
});

const alertOf = (text) => /<p role="alert">(.*?)<\/p>/s.exec(text)?.[1]
	.replace(/&#(\d+);/g, (_, n) => String.fromCharCode(n));
const signIn = async (person, b = new Browser(), provider = 'company') =>
	({ ...await b.go(`${here.url}login/${provider}`, person), b });
/** Asks until the answer is as wanted, for at most 2 s: another process hears of a change by a notification. */
async function soon(ask, want, what) {
	const end = Date.now() + SOON_MS;
	let got = await ask();
	while (got !== want && Date.now() < end) got = await ask();
	assert.equal(got, want, what);
}
const statusOf = async (b, address = 'api/v1/runs?limit=1') => (await b.once(here.url + address)).status;
const scopeIs = (b, want) => soon(async () => (await (await b.once(`${here.url}api/v1/session`)).json()).scope, want);
const tokens = async (begin) => JSON.parse(await dptrack('token', 'list', '--json')).tokens
	.filter((t) => t.name.startsWith(begin)).map((t) => `${t.name} ${t.scope} ${t.state}`).sort();

test('a first sign-in makes the person; groups decide at each sign-in', async () => {
	const bea = await signIn('bea');
	assert.equal(bea.status, 200, bea.text);
	await scopeIs(bea.b, 'write');
	await scopeIs((await signIn('cid')).b, 'read');
	assert.deepEqual(await tokens('company:'), ['company:bea write valid', 'company:cid read valid']);
	assert.equal((await new Browser().once(`${here.url}api/v1/runs`)).status, 401);

	// groups are in userinfo; another provider's bea is another person
	const lean = await signIn('bea', undefined, 'lean');
	assert.equal(lean.status, 200, lean.text);
	await scopeIs(lean.b, 'read');
	await scopeIs(bea.b, 'write');

	here.provider.groups.cid = ['ml'];
	const cid = await signIn('cid');
	await scopeIs(cid.b, 'write');
	here.provider.groups.cid = [];
	const out = await signIn('cid');
	assert.equal(out.status, 403);
	assert.equal(alertOf(out.text), 'Company:cid is in no group that may use this server: ask its administrator.');
	await soon(() => statusOf(cid.b), 401, 'the earlier session has ended');
	here.provider.groups.cid = ['guests'];
	await scopeIs((await signIn('cid')).b, 'read');

	const dan = await signIn('dan');
	assert.equal(dan.status, 403);
	assert.deepEqual(await tokens('company:dan'), []);
});

test('groups grant experiments; several grant together', async () => {
	assert.equal((await signIn('fay')).status, 403, 'no group, no access');
	const experiments = async (who) => (await (await who.once(`${here.url}api/v1/experiments`)).json())
		.experiments.map((e) => e.name);
	const headers = { 'content-type': 'application/json', origin: new URL(here.url).origin };
	const create = async (who, name) => (await who.once(`${here.url}api/v1/experiments`,
		{ method: 'POST', body: JSON.stringify({ name }), headers })).status;
	const asked = async (groups) => {
		here.provider.groups.fay = groups;
		const fay = await signIn('fay');
		assert.equal(fay.status, 200, fay.text);
		const mine = async () => {
			const r = await (await fay.b.once(`${here.url}api/v1/session`)).json();
			return `${r.person} ${r.scope} ${r.experiments ?? 'all'}`;
		};
		return { b: fay.b, mine };
	};
	for (const [groups, scope, grants, all, made] of [
		[['guests'], 'read', 'all', true, 403],
		[['open'], 'read', 'fash*=read,none*=none', false, 403],
		[['open', 'makers'], 'write', 'fash*=write,none*=none,new*=write+create', false, 201],
		[['open', 'guests'], 'read', 'fash*=read,none*=none,*=read', true, 403],
	]) {
		const { b, mine } = await asked(groups);
		for (let i = 0; i < 2; i++) await soon(mine, `company:fay ${scope} ${grants}`); // by each process
		const names = await experiments(b);
		assert.deepEqual([names.includes('fashion'), names.length > 1], [true, all], groups.join());
		assert.deepEqual([await create(b, 'new-' + groups.length), await create(b, 'other')], [made, 403]);
	}
});

test('forged, expired, replayed and foreign tokens are refused with one line', async () => {
	const { provider } = here;
	const pem = createPublicKey({ format: 'jwk', key: provider.key }).export({ type: 'spki', format: 'pem' });
	const now = () => Math.floor(Date.now() / 1000);
	const remade = (change) => (token) => {
		const [header, claims] = parts(token);
		return sign(header, { ...claims, ...change(claims) }, provider.key);
	};
	let earlier;
	const cases = {
		'changed claims': [(t) => t.replace(/\.[^.]*/, '.' + b64({ ...parts(t)[1], sub: 'bea' })),
			/signature .* is wrong/],
		'another key under the same id': [(t) => sign(parts(t)[0], parts(t)[1], makeKey('first')),
			/signature .* is wrong/],
		'an unknown key': [(t) => sign({ alg: 'RS256', kid: 'second' }, parts(t)[1], makeKey('second')),
			/key "second", which is not one of its keys/],
		'alg none': [(t) => `${b64({ alg: 'none' })}.${b64(parts(t)[1])}.`, /signed by "none"|malformed/],
		'alg none, with the id of a key': [(t) => `${b64({ alg: 'none', kid: 'first' })}.${b64(parts(t)[1])}.`,
			/signed by "none"|malformed/],
		'the public key as a shared one': [(t) => {
			const text = `${b64({ alg: 'HS256', kid: 'first' })}.${b64(parts(t)[1])}`;
			return `${text}.${createHmac('sha256', pem).update(text).digest('base64url')}`;
		}, /signed by "HS256"/],
		'the password as a shared key': [(t) => {
			const text = `${b64({ alg: 'HS256' })}.${b64(parts(t)[1])}`;
			return `${text}.${createHmac('sha256', provider.secret).update(text).digest('base64url')}`;
		}, /signed by "HS256"/],
		expired: [remade(() => ({ exp: now() - 120 })), /has expired/],
		'issued long ago': [remade(() => ({ iat: now() - 900 })), /older than this sign-in/],
		'from the future': [remade(() => ({ nbf: now() + 900 })), /from the future/],
		'without times': [remade(() => ({ exp: undefined })), /no "exp"/],
		'another audience': [remade(() => ({ aud: 'other' })), /for another client than dptrack/],
		'another party among the audiences': [remade(() => ({ aud: ['dptrack', 'other'], azp: 'other' })),
			/for another client/],
		'several audiences without a party': [remade(() => ({ aud: ['dptrack', 'other'] })),
			/for another client/],
		'another issuer': [remade(() => ({ iss: 'https://evil.example' })),
			/of another issuer: "https:\/\/evil\.example"/],
		'no nonce': [remade(() => ({ nonce: undefined })), /belongs to another sign-in/],
		'no subject': [remade(() => ({ sub: undefined })), /no "sub"/],
		'not a token': [() => 'abc', /malformed/],
		'half a token': [(t) => t.slice(0, -40), /signature .* is wrong|malformed/],
		'critical headers': [(t) => sign({ ...parts(t)[0], crit: ['x'], x: 1 }, parts(t)[1], provider.key),
			/critical headers/],
	};
	provider.forge = (t) => (earlier = t);
	assert.equal((await signIn('eve')).status, 200);
	cases.replayed = [() => earlier, /belongs to another sign-in/];
	try {
		for (const [what, [forge, reason]] of Object.entries(cases)) {
			provider.forge = forge;
			const { status, text, b } = await signIn('eve');
			assert.equal(status, 403, `${what}: ${text}`);
			assert.match(alertOf(text), reason, what);
			assert.equal((await b.once(`${here.url}api/v1/runs`)).status, 401, what);
		}
		provider.forge = remade(() => ({ aud: ['dptrack', 'other'], azp: 'dptrack' }));
		assert.equal((await signIn('eve')).status, 200, 'several audiences, for this client');
	} finally {
		provider.forge = null;
	}
	for (const [skewS, words] of [[600, 'earlier than'], [-600, 'later than']]) {
		provider.skewS = skewS;
		const { status, text } = await signIn('eve');
		provider.skewS = 0;
		assert.equal(status, 403);
		assert.equal(alertOf(text),
			`The clock of this server is 10 minutes ${words} that of Company <&>: set both clocks by NTP.`);
	}
});

test('an answer of the provider counts once, in the browser where the sign-in began', async () => {
	const b = new Browser(), callback = (url) => url.includes('/callback?');
	const { url } = await b.go(`${here.url}login/company`, 'bea', callback);
	const refused = async (who, address, status, reason) => {
		const r = await who.once(address), text = await r.text();
		assert.equal(r.status, status, text);
		assert.match(alertOf(text), reason);
	};
	await refused(new Browser(), url, 403, /began in another browser/);
	assert.equal((await b.once(url)).status, 200);
	await refused(b, url, 403, /began in another browser, or more than ten minutes ago/);

	const c = new Browser();
	const { url: mine } = await c.go(`${here.url}login/company`, 'cid', callback);
	await refused(c, mine.replace(/state=[^&]*/, 'state=' + '0'.repeat(64)), 403, /began in another browser/);

	const d = new Browser();
	const { url: used } = await d.go(`${here.url}login/company`, 'cid', callback);
	const flow = { ...d.jar[new URL(here.url).host] };
	assert.equal((await d.once(used)).status, 200);
	Object.assign(d.jar[new URL(here.url).host], flow); // a browser that kept the cookie
	await refused(d, used, 403, /refused the sign-in: invalid_grant/);

	const e = new Browser();
	const { url: wrong } = await e.go(`${here.url}login/company`, 'cid', callback);
	await refused(e, wrong.replace(/iss=[^&]*/, 'iss=https%3A%2F%2Fevil.example'), 403, /not from Company/);
	const f = new Browser();
	const { url: denied } = await f.go(`${here.url}login/company`, 'cid', callback);
	await refused(f, denied.replace(/code=[^&]*/, 'error=access_denied&error_description=%3Cb%3Eno'), 403,
		/^Company <&> refused the sign-in: access_denied: <b>no\.$/);
	await refused(new Browser(), `${here.url}login/nobody`, 404, /^There is no sign-in by 'nobody' here\.$/);
});

test('two persons in a browser: what the groups allow, live; a revoked person ends within 2 s', async (t) => {
	const persons = {};
	for (const [name, label] of [['bea', 'ml'], ['cid', 'guests']]) {
		here.provider.groups[name] = [label];
		const context = await here.browser.newContext({ viewport: { width: 1280, height: 800 } });
		t.after(() => context.close());
		const page = persons[name] = await context.newPage();
		const complaints = [];
		page.on('pageerror', (e) => complaints.push(String(e)));
		page.on('console', (m) => /Content Security Policy/.test(m.text()) && complaints.push(m.text()));
		await page.goto(`${here.url}?e=fashion#/experiments/1`);
		await clean(page);
		await page.click('text=Sign in with Company <&>');
		await page.fill('[name=login]', name);
		await page.fill('[name=password]', 'any');
		await page.click('button[type=submit]');
		await page.click('button:has-text("Continue")', WAIT);
		await page.waitForSelector('.app[data-ready="true"]', WAIT);
		assert.ok(page.url().startsWith(`${here.url}?`) && page.url().includes('e=fashion'), page.url());
		assert.equal(await page.evaluate(() => document.cookie), '');
		assert.deepEqual(complaints, []);
	}
	const mayWrite = (page) => page.evaluate(async () => {
		const [run] = (await (await fetch('api/v1/runs?limit=1')).json()).runs;
		return (await fetch('api/v1/runs/' + run.id, { method: 'PATCH', body: JSON.stringify({ notes: 'seen' }),
			headers: { 'Content-Type': 'application/json' } })).status;
	});
	await soon(() => mayWrite(persons.bea), 200);
	await soon(() => mayWrite(persons.cid), 403);

	const signOutAndIn = async (page) => {
		await page.click('.nav a[title="Settings"]', WAIT);
		await page.click('text=Sign out', WAIT);
		await page.waitForSelector('#token', WAIT);
		await page.click('text=Sign in with Company <&>'); // the provider still knows the person
		await page.waitForSelector('.app[data-ready="true"]', WAIT);
	};
	here.provider.groups.cid = ['ml'];
	await soon(() => mayWrite(persons.cid), 403, 'groups count at the next sign-in');
	await signOutAndIn(persons.cid);
	await soon(() => mayWrite(persons.cid), 200);

	const ended = persons.bea.evaluate(() => new Promise((done) => {
		const es = new EventSource('api/v1/events');
		es.onopen = () => { globalThis.streaming = true; };
		es.onerror = () => done(Date.now());
		globalThis.streamClosed = () => es.readyState === EventSource.CLOSED;
	}));
	await persons.bea.waitForFunction(() => globalThis.streaming);
	await dptrack('token', 'revoke', 'company:bea');
	const began = Date.now();
	assert.ok(await ended - began < SOON_MS, 'the event stream ends');
	await persons.bea.waitForFunction(() => globalThis.streamClosed(), null, WAIT); // it cannot be opened again
	await soon(() => persons.bea.evaluate(async () => (await fetch('api/v1/runs')).status), 401);
	await soon(() => mayWrite(persons.cid), 200, 'the other person goes on');
	await persons.bea.waitForSelector('.banner:has-text("signed out")', WAIT);
	await persons.bea.reload();
	await persons.bea.click('text=Sign in with Company <&>');
	await persons.bea.waitForSelector('[role=alert]:has-text("was revoked here")', WAIT);
	await dptrack('token', 'add', 'company:bea', '--scope', 'read');
	await persons.bea.click('text=Sign in with Company <&>');
	await persons.bea.waitForSelector('.app[data-ready="true"]', WAIT);
	await soon(() => mayWrite(persons.bea), 200, 'let in again, with what the groups grant');
});

/** Runs `dptrack login`; resolves to {address, code, done}: done resolves to its exit code. */
async function login(home, ...words) {
	const child = spawn(program, ['login', here.url, ...words], { stdio: ['ignore', 'pipe', 'pipe'],
		env: { ...process.env, XDG_CONFIG_HOME: home } });
	let out = '', said = '';
	child.stdout.on('data', (d) => { out += d; });
	child.stderr.on('data', (d) => { said += d; });
	const done = new Promise((ok) => child.on('exit', (code) => ok({ code, out, said })));
	const address = await until(() => Promise.resolve(/^http\S+$/m.exec(out + said)?.[0]), (a) => a);
	return { address, code: /code ([0-9a-f-]{9}),/.exec(said)[1], done };
}

test('a program gets a token that a person allows in the browser, and loses it with the person', async (t) => {
	const home = path.join(here.folder, 'home'), env = { ...process.env, XDG_CONFIG_HOME: home };
	here.provider.groups.eve = ['ml'];
	const context = await here.browser.newContext();
	t.after(() => context.close());
	const page = await context.newPage();
	const first = await login(home, '--name', 'lap<top>');
	await page.goto(first.address);
	await page.click('text=Sign in with Company <&>');
	await page.fill('[name=login]', 'eve');
	await page.fill('[name=password]', 'any');
	await page.click('button[type=submit]');
	await page.click('button:has-text("Continue")', WAIT);
	await page.waitForSelector('#code', WAIT);
	assert.equal(await page.textContent('#code'), first.code);
	assert.match(await page.textContent('form'), /lap<top> use this server as company:eve\?/);
	await clean(page);
	await page.click('text=Allow');
	await page.waitForSelector('text=may use this server as company:eve', WAIT);
	assert.equal((await first.done).code, 0);
	await page.goto(first.address);
	await page.click('text=Allow');
	await page.waitForSelector('[role=alert]:has-text("was used already")', WAIT); // for no second person
	const kept = path.join(home, 'dptrack/tokens');
	assert.equal(statSync(kept).mode & 0o777, 0o600);

	const ls = (more = env) => run(program, ['ls', '--url', here.url, '--json'], more);
	assert.equal((await ls()).status, 0);
	assert.notEqual((await ls({ ...process.env, XDG_CONFIG_HOME: '/nowhere' })).status, 0);
	const python = async (code) => {
		const r = await run('python3', ['-c', code], { ...env, DPTRACK_URL: here.url,
			PYTHONDONTWRITEBYTECODE: '1', DPTRACK_RUNS_DIR: path.join(here.folder, 'spool'),
			PYTHONPATH: path.join(srcdir, 'tracker/python'),
			DPTRACK_LIBRARY: path.join(builddir, '.libs/libdptrack.so.0') });
		assert.equal(r.status, 0, r.said);
		return r.out.trim();
	};
	await python('import dptrack; r = dptrack.init(experiment="mine", run_name="sent"); '
		+ 'r.log({"loss": 1.0}, step=1); r.finish()');
	const mine = JSON.parse((await run(program, ['ls', 'mine', '--url', here.url, '--json'], env)).out).runs;
	assert.deepEqual(mine.map((r) => r.name), ['sent'], 'Python sends by the stored token');
	assert.equal(await python('import dptrack; print([r.name for r in dptrack.runs(experiment="mine")])'),
		"['sent']");

	const printed = await login(home, '--name', 'other', '--print');
	await page.goto(printed.address);
	await page.click('text=Allow');
	const { out } = await printed.done, auth = { headers: { Authorization: 'Bearer ' + out.trim() } };
	assert.match(out, /^dpt-[0-9a-z]{40}\n$/);
	await soon(async () => (await fetch(`${here.url}api/v1/runs?limit=1`, auth)).status, 200);
	assert.equal((await fetch(`${here.url}api/v1/tokens`, auth)).status, 403);
	assert.deepEqual(await tokens('company:eve'),
		['company:eve write valid', 'company:eve/lap<top> write valid', 'company:eve/other write valid']);

	await dptrack('token', 'revoke', 'company:eve/other');
	await soon(async () => (await fetch(`${here.url}api/v1/runs?limit=1`, auth)).status, 401);
	assert.equal((await ls()).status, 0, 'the other one stays');
	here.provider.groups.eve = ['guests'];
	await signIn('eve');
	assert.equal((await tokens('company:eve'))[1], 'company:eve/lap<top> read valid');
	await dptrack('token', 'revoke', 'company:eve');
	assert.notEqual((await ls()).status, 0, 'all end with the person');

	assert.equal((await fetch(`${here.url}device`)).status, 401);
	const token = (await dptrack('token', 'add', 'hal', '--scope', 'read')).trim();
	const query = `token=${'1'.repeat(64)}&name=x`, hal = new Browser();
	const form = { token, page: 'device', query };
	await soon(async () => (await hal.once(`${here.url}login`, { method: 'POST', form })).headers.get('location'),
		`./device?${query}`, 'the form returns to the question');
	assert.match(await (await hal.once(`${here.url}device?${query}`)).text(), /as <b>hal<\/b>\?/);
	const cid = (await signIn('cid')).b;
	assert.equal((await cid.once(`${here.url}device?token=zz&name=x`)).status, 400);
	const cross = await cid.once(`${here.url}device`, { method: 'POST', form: { token: '0'.repeat(64), name: 'x' },
		headers: { origin: 'https://evil.example' } });
	assert.equal(cross.status, 403);
});

test('a provider that is down hinders nothing but its own sign-in', async () => {
	const { b } = await signIn('cid');
	const { url: answer } = await b.go(`${here.url}login/company`, 'cid', (u) => u.includes('/callback?'));
	const flow = { ...b.jar };
	await here.provider.close();
	for (const address of [`${here.url}login/company`, answer]) {
		const r = await b.once(address), text = await r.text();
		assert.equal(r.status, 503, text);
		assert.match(alertOf(text), /^Company <&> cannot be reached now: http:\/\/127\.0\.0\.1:\d+: [^\n]+\.$/);
	}
	assert.ok(flow);
	assert.equal((await b.once(`${here.url}api/v1/runs?limit=1`)).status, 200, 'the session goes on');
	here.lean.groups.cid = ['ml'];
	assert.equal((await signIn('cid', undefined, 'lean')).status, 200, 'the other provider, too');

	if (process.env.DPTRACK_DB) return;
	const other = path.join(here.folder, 'other');
	const s = await serveFolder(other, 0, ['--oidc', configure('down.json', [company()])]);
	assert.match(s.said(), /warning: sign-in: Company <&> cannot be reached now: .*the server starts without it/);
	await s.close();
});

test('a wrong configuration: one line, and the server does not start', async () => {
	const { issuer } = here.lean, lean = (more) => company({ issuer, ...more });
	const never = path.join(here.folder, 'never');
	const start = (...words) => run(program, ['serve', '--logdir', never, '--port', '0', ...words]);
	const cases = [
		[[lean({ issuer: issuer.replace('127.0.0.1', 'localhost') })],
			/the provider there is the issuer "http:\/\/127\.0\.0\.1:\d+": check "issuer"/],
		[[lean({ issuer: issuer + '/' })], /check "issuer"/],
		[[lean({ issuer: issuer + '/realms/none' })],
			/is not an issuer of OpenID Connect: check "issuer": .*status 404/],
		[[lean({ issuer: 'http://id.example' })], /providers\[0\]: "issuer": expected https:/],
		[[lean({ grants: { ml: 'root' } })],
			/"grants": "ml": expected read, write, admin or EXPERIMENT=LEVEL,…: exp/],
		[[lean({ grants: { ml: 'a**=read' } })], /"grants": "ml": .*at most one star/],
		[[lean({ grants: {} })], /"grants": expected/],
		[[lean({ grants: undefined })], /providers\[0\]: "grants" is missing/],
		[[lean({ clientid: 'x' })], /unknown member "clientid"/],
		[[lean({ name: 'A b' })], /"name": expected 1 to 32 of/],
		[[lean(), lean()], /another provider is named company/],
		[[lean({ client_secret_file: '/nowhere' })], /client_secret_file \/nowhere: No such file/],
		[[], /"providers": expected a list of 1 to 16/],
	];
	for (const [providers, reason] of cases) {
		const r = await start('--oidc', configure('wrong.json', providers));
		assert.equal(r.status, 2, r.said);
		const lines = r.said.trim().split('\n');
		assert.equal(lines.length, 1, r.said);
		assert.match(lines[0], reason);
	}
	const r = await start('--behind-proxy', '--oidc', configure('wrong.json', [lean()]));
	assert.match(r.said, /"url" is missing: expected the address of this server in browsers/);
});
