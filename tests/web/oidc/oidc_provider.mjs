// SPDX-License-Identifier: Apache-2.0
// A real provider of OpenID Connect (npm's oidc-provider) on this machine, whose ID tokens a test can replace on their
// way, a reverse proxy that serves a server below a path, and a small browser without scripts that signs in.
import { createPrivateKey, createSign, generateKeyPairSync } from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { builddir } from '../serve.mjs';

const listen = (server, port = 0) => new Promise((done) => {
	server.listen(port, '127.0.0.1', () => done(server.address().port));
});
const close = (server) => new Promise((done) => {
	server.close(done);
	server.closeAllConnections();
});

/** A port that was free a moment ago. */
export async function freePort() {
	const s = http.createServer(), port = await listen(s);
	await close(s);
	return port;
}

export const b64 = (what) => Buffer.from(typeof what === 'string' ? what : JSON.stringify(what)).toString('base64url');
export const parts = (token) => token.split('.').slice(0, 2)
	.map((p) => JSON.parse(Buffer.from(p, 'base64url')));

/** Signs a token with RS256, by node's own crypto. */
export function sign(header, claims, jwk) {
	const text = `${b64(header)}.${b64(claims)}`;
	const key = createPrivateKey({ format: 'jwk', key: jwk });
	return `${text}.${createSign('RSA-SHA256').update(text).sign(key).toString('base64url')}`;
}

export function makeKey(kid) {
	const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
	return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' };
}

/**
 * Starts a provider for a client that it sends back to `redirects`. Every person may sign in by any password;
 * groups[person] are their groups. forge(token) replaces an ID token, skewS moves the provider's clock. With `lean`
 * the ID token has no groups: they are in userinfo.
 */
export async function startProvider({ redirects, lean = false, port = 0 }) {
	const file = path.join(builddir, 'tests/web/work/node_modules/oidc-provider/lib/index.js');
	const { default: Provider } = await import(pathToFileURL(file));
	const p = { groups: {}, forge: null, skewS: 0, key: makeKey('first'),
		secret: 'a-secret-of-the-client-0123456789' };
	let inner = (_, res) => res.end();
	const server = http.createServer((req, res) => inner(req, res));
	p.port = await listen(server, port);
	p.issuer = `http://127.0.0.1:${p.port}`;
	const provider = new Provider(p.issuer, {
		clients: [{ client_id: 'dptrack', client_secret: p.secret, redirect_uris: redirects,
			grant_types: ['authorization_code'], response_types: ['code'] }],
		jwks: { keys: [p.key] },
		claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email'] },
		conformIdTokenClaims: lean,
		cookies: { keys: ['a key of this test'] },
		pkce: { required: () => true },
		findAccount: (_, id) => ({ accountId: id,
			claims: () => ({ sub: id, preferred_username: id, groups: p.groups[id] ?? [] }) }),
	});
	provider.use(async (ctx, next) => {
		await next();
		ctx.set('Date', new Date(Date.now() + p.skewS * 1000).toUTCString());
		if (ctx.oidc?.route === 'token' && ctx.body?.id_token) {
			if (p.skewS) {
				const [header, claims] = parts(ctx.body.id_token);
				ctx.body = { ...ctx.body, id_token: sign(header, { ...claims, iat: claims.iat + p.skewS,
					exp: claims.exp + p.skewS }, p.key) };
			}
			if (p.forge) ctx.body = { ...ctx.body, id_token: p.forge(ctx.body.id_token) };
		}
	});
	inner = provider.callback();
	p.close = () => close(server);
	return p;
}

/** A reverse proxy: what is below /track/ goes to the root of each server in turn. */
export async function startProxy(port, targets) {
	let turn = 0;
	const server = http.createServer((req, res) => {
		const target = targets[turn++ % targets.length];
		if (!req.url.startsWith('/track/')) return res.writeHead(404).end();
		const headers = { ...req.headers, host: new URL(target).host, 'x-forwarded-host': req.headers.host,
			'x-forwarded-proto': 'http', 'x-forwarded-for': '192.0.2.7' };
		const address = target + req.url.slice('/track/'.length);
		const out = http.request(address, { method: req.method, headers }, (back) => {
			res.writeHead(back.statusCode, back.headers);
			back.pipe(res);
		});
		out.on('error', () => res.destroy());
		res.on('close', () => out.destroy());
		req.pipe(out);
	});
	await listen(server, port);
	return { url: `http://127.0.0.1:${port}/track/`, close: () => close(server) };
}

/** A browser that follows redirects and fills the provider's forms, and keeps cookies by port. */
export class Browser {
	jar = {};

	async once(url, { method = 'GET', form, body, headers = {} } = {}) {
		const { host } = new URL(url), jar = (this.jar[host] ??= {});
		const r = await fetch(url, { method, redirect: 'manual', body: form ? new URLSearchParams(form) : body,
			headers: { accept: 'text/html', ...headers,
				cookie: Object.entries(jar).map((kv) => kv.join('=')).join('; ') } });
		for (const line of r.headers.getSetCookie()) {
			const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
			if (value === '' || /max-age=0|expires=Thu, 01 Jan 1970/i.test(line)) delete jar[name];
			else jar[name] = value;
		}
		return r;
	}

	/** Goes on until a page is no redirect and no form of the provider. Resolves to {url, status, text}. */
	async go(url, person, stop = () => false) {
		let r = await this.once(url);
		for (let i = 0; i < 20; i++) {
			const to = r.headers.get('location');
			if (to) {
				url = new URL(to, url).href;
				if (stop(url)) return { url, status: r.status, text: '' };
				r = await this.once(url);
				continue;
			}
			const text = await r.text();
			const action = /<form[^>]*action="([^"]*\/interaction\/[^"]*)"/.exec(text)?.[1];
			if (!action) return { url, status: r.status, text };
			const prompt = /name="prompt" value="(\w+)"/.exec(text)[1];
			url = new URL(action, url).href;
			r = await this.once(url, { method: 'POST', form: { prompt, login: person, password: 'any' } });
		}
		throw new Error('too many redirects: ' + url);
	}
}
