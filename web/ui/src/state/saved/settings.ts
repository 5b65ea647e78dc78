// SPDX-License-Identifier: Apache-2.0
// Tokens, providers, share links, the audit log and retention: what the settings show and change, as REST has it.
import { request, type Level } from '../server/api.ts';

export interface Token {
	name: string;
	person: string;
	scope: Level;
	/** Text of grants; null: the scope in all experiments. */
	experiments: string | null;
	state: 'valid' | 'expired' | 'revoked';
	created_time: number;
	expires_time: number | null;
	/** Only when it is made. */
	token?: string;
}

export interface Provider extends Record<'name' | 'label' | 'issuer' | 'client_id' | 'redirect_uri', string> {
	/** What a group may do. */
	grants: Record<string, string>;
}

export interface Share extends Record<'id' | 'kind' | 'name' | 'experiment' | 'person', string>,
	Pick<Token, 'state' | 'created_time' | 'expires_time'> {
	/** When it was opened last. */
	used_time: number | null;
}

/** via: how the author is known. */
export interface AuditEntry extends Record<'via' | 'author' | 'action' | 'object' | 'id' | 'name' | 'experiment'
	| 'detail', string> {
	seq: number;
	time: number;
}

/** What is deleted by itself; null: nothing for this reason. */
export interface Rule {
	artifact_days: number | null;
	keep_best: number;
	trash_days: number | null;
	quota_bytes: number | null;
}

interface OwnRule extends Rule {
	experiment: string;
}

export interface Retention {
	all: Rule;
	/** Of experiments with rules of their own. */
	experiments: OwnRule[];
	/** Whether freed bytes go back to the disk. */
	space: 'returned' | 'reused';
}

type Sums = Record<'artifacts' | 'artifact_bytes' | 'runs' | 'models' | 'trash_bytes', number>;

/** What a rule would delete. */
export interface Preview extends Sums {
	experiments: (Sums & { experiment: string; id: string; goal: string | null; kept_runs: number })[];
}

const ask = async <T>(path: string, body?: unknown, method?: string): Promise<T> =>
	await request(path, body, method) as unknown as T;
const args = (o: object) => '?' + new URLSearchParams(Object.entries(o).filter(([, v]) => v !== null && v !== '')
	.map(([k, v]) => [k, String(v)]));

/** All tokens, or the valid ones of the session's person. */
export const getTokens = async (all: boolean): Promise<Token[]> =>
	(await ask<{ tokens: Token[] }>(all ? 'tokens' : 'session/tokens')).tokens;

/** expires_time, experiments: left out if null or ''. */
export const makeToken = (wish: Pick<Token, 'name' | 'person' | 'scope' | 'experiments' | 'expires_time'>) =>
	ask<Token>('tokens', Object.fromEntries(Object.entries(wish).filter(([, v]) => v !== null && v !== '')));

export const revokeToken = (name: string) => ask('tokens/' + encodeURIComponent(name), undefined, 'DELETE');

export const getProviders = async () => (await ask<{ providers: Provider[] }>('providers')).providers;

export const getShares = async () => (await ask<{ shares: Share[] }>('shares')).shares;

export const revokeShare = (id: string) => ask('shares/' + id, undefined, 'DELETE');

/** Entries, the newest first. page: of the reply before, null: the first. */
export const getAudit = (wish: { author: string; object: string; experiment: string }, page: string | null) =>
	ask<{ entries: AuditEntry[]; next_page_token: string | null }>('audit' + args({ ...wish, page_token: page }));

export const getRetention = () => ask<Retention>('retention');

/** rule null: the rules for all count. experiment null: the rules for all are set. */
export const putRetention = (experiment: string | null, rule: Rule | null) => ask<Retention>('retention',
	{ ...experiment !== null && { experiment }, ...rule ?? { inherit: true } }, 'PUT');

/** What the rule would delete, in an experiment or all. */
export const previewRetention = (experiment: string | null, rule: Rule) =>
	ask<Preview>('retention/preview' + args({ ...rule, experiment }));
