// SPDX-License-Identifier: Apache-2.0
// Persons, tokens and grants: three lists of the same tokens; a new token is shown once.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { count, when } from '../../base/format.ts';
import * as s from '../../state/index.ts';
import { getTokens, makeToken, revokeToken, type Token } from '../../state/saved/settings.ts';
import { useLoaded } from '../base/bits.tsx';
import { useFocus } from '../base/focus.ts';
import { AskButton, List, useAct, type Column } from '../base/lists/list.tsx';
import { Card, variables } from '../compare/noruns.tsx';
import { grantsOf, grantsText, GrantsForm, levelWord, MayDo, whereText, type Grant } from './grants.tsx';

const DAY_MS = 86400e3;
const ENDS: readonly [number, string][] = [[30, 'in 30 days'], [90, 'in 90 days'], [365, 'in a year'], [0, 'never']];

const ends = (t: Token) => t.state !== 'valid' ? t.state : t.expires_time === null ? 'never' : when(t.expires_time);

const COLUMNS: readonly Column<Token>[] = [
	{ head: 'Name', cell: (t) => t.name },
	{ head: 'Person', cell: (t) => t.person },
	{ head: 'May do', cell: (t) => <MayDo list={grantsOf(t.experiments, t.scope)} /> },
	{ head: 'Made', cell: (t) => when(t.created_time), num: true, wide: true },
	{ head: 'Ends', cell: ends, num: true },
];

/** revoke: offered if given. */
export function TokenList({ list, revoke }: { list: readonly Token[] | null; revoke?: (t: Token) => void }) {
	return <List label="Tokens" rows={list} id={(t) => `${t.name} ${t.created_time}`} columns={COLUMNS}
		texts={(t) => [t.name, t.person, t.experiments ?? '', t.state]} none="No tokens yet"
		acts={revoke && ((t) => t.state === 'valid' && <AskButton label="Revoke" word="Revoke"
			title={`Revoke ${t.name}?`} act={() => revoke(t)}>
			<p>Programs and sessions that use it are refused at once. It cannot be
				undone.</p></AskButton>)} />;
}

/** The text of a new token, which is not stored. */
function Made({ t, close }: { t: Token; close: () => void }) {
	const box = useRef<HTMLDivElement>(null);
	useFocus(box, ['button']);
	const token = { title: `Token ${t.name}`, about: 'Copy it now: it is not shown again.', text: t.token!, token:
		'' };
	return (
		<div class="made" ref={box} tabIndex={-1}>
			<Card way={token} />
			<details><summary>Lines for a program</summary><div class="ways">{variables(t.token!).map((w) =>
				<Card key={w.title} way={w} />)}</div></details>
			<p><button type="button" onClick={close}>Done</button></p>
		</div>
	);
}

function MakeForm({ persons, made, close }: { persons: string[]; made: (t: Token) => void; close: () => void }) {
	const box = useRef<HTMLFormElement>(null);
	const [name, person, scope, days, some] = [useSignal(''), useSignal(''), useSignal('write'), useSignal(90),
		useSignal(false)];
	const grants = useSignal<readonly Grant[]>([{ name: '', level: 'read' }]);
	const { act, said } = useAct();
	useFocus(box, ['input']);
	const begin = async () => {
		const experiments = some.value ? grantsText(grants.value) : null;
		if (experiments === '') throw new Error('Name an experiment, or choose all experiments.');
		made(await makeToken({ name: name.value.trim(), person: person.value.trim(), scope: scope.value,
			experiments,
			expires_time: days.value ? Date.now() + days.value * DAY_MS : null }));
	};
	return (
		<form class="box form" ref={box} aria-label="New token" onSubmit={(e) => {
			e.preventDefault();
			act(begin);
		}}>
			<h2>New token</h2>
			<label>Name <input value={name.value} required placeholder="bea-laptop"
				onInput={(e) => (name.value = e.currentTarget.value)} /></label>
			<label>Person <input value={person.value} placeholder="As the name" list="persons"
				onInput={(e) => (person.value = e.currentTarget.value)} /></label>
			<datalist id="persons">{persons.map((p) => <option key={p} value={p} />)}</datalist>
			<label>May at most <select value={scope.value} onChange={(e) => (scope.value =
				e.currentTarget.value)}>
				{['read', 'write', 'admin'].map((l) => <option
					key={l} value={l}>{levelWord(l)}</option>)}
			</select></label>
			<label>Where <select value={some.value ? 'some' : 'all'}
				onChange={(e) => (some.value = e.currentTarget.value === 'some')}>
				<option value="all">In all experiments</option>
				<option value="some">In some experiments; the others are
					hidden</option></select></label>
			{some.value && <GrantsForm list={grants} scope={scope.value} />}
			<label>Ends <select value={days.value}
				onChange={(e) => (days.value = Number(e.currentTarget.value))}>
				{ENDS.map(([n, word]) => <option key={n} value={n}>{word}</option>)}</select></label>
			{said}
			<p class="options"><button type="submit" class="primary">Make token</button>
				<button type="button" onClick={close}>Cancel</button></p>
		</form>
	);
}

/** Loads the tokens, again after a change. */
function useTokens() {
	const rev = useSignal(0);
	const { value, wrong } = useLoaded(() => getTokens(true), [rev.value]);
	return { list: value, wrong: wrong && <p class="problem" role="alert">{wrong}</p>,
		again: () => void rev.value++ };
}

export function Tokens() {
	const { list, wrong, again } = useTokens();
	const making = useSignal(false);
	const made = useSignal<Token | null>(null);
	const { act, said } = useAct();
	const take = (t: Token) => {
		made.value = t;
		making.value = false;
		again();
	};
	return (
		<>
			<p class="dim">A token lets a program, or a browser, use this server. What is not granted does
				not
				exist for it.</p>
			{made.value ? <Made t={made.value} close={() => (made.value = null)} />
				: making.value ? <MakeForm persons={personsOf(list ?? []).map((p) =>
					p.name)} made={take}
					close={() => (making.value = false)} />
				: s.session.value?.scope ? <p><button type="button" class="primary"
					onClick={() => (making.value = true)}>New token</button></p>
				: <p>The first token is made on the server's machine:
					{' '}<code>dptrack token add NAME --scope admin</code></p>}
			{said}{wrong}
			<TokenList list={list} revoke={(t) => act(() => revokeToken(t.name).finally(again))} />
		</>
	);
}

interface Person {
	name: string;
	/** The valid ones. */
	tokens: Token[];
}

/** Persons with a token that holds, in the order of their first one. */
function personsOf(list: readonly Token[]): Person[] {
	const valid = list.filter((t) => t.state === 'valid');
	return [...new Set(valid.map((t) => t.person))].map((name) =>
		({ name, tokens: valid.filter((t) => t.person === name) }));
}

export function Persons() {
	const { list, wrong, again } = useTokens();
	const { act, said } = useAct();
	const lockOut = async (p: Person) => {
		for (const t of p.tokens) await revokeToken(t.name);
	};
	return (
		<>
			<p class="dim">Everybody who has a token or has signed in by a provider.</p>
			{said}{wrong}
			<List label="Persons" rows={list && personsOf(list)} id={(p) => p.name} none="No persons yet"
				texts={(p) => [p.name]} columns={[
					{ head: 'Name', cell: (p) => p.name },
					{ head: 'May do', cell: (p) => <MayDo list={p.tokens.flatMap((t) =>
						grantsOf(t.experiments, t.scope))} /> },
					{ head: 'Tokens', cell: (p) => p.tokens.length, num: true },
					{ head: 'Since', cell: (p) => when(p.tokens[0]!.created_time), num: true },
				]}
				acts={(p) => <AskButton label="Lock out" word="Lock out" title={`Lock out ${p.name}?`}
					act={() => act(() => lockOut(p).finally(again))}>
					<p>This revokes {count(p.tokens.length, 'token')}: programs and sessions are
						refused
						at once. Who signs in by a provider can come back only
						after <code>dptrack token add</code> of the same
							name.</p></AskButton>} />
		</>
	);
}

interface Granted extends Grant {
	token: Token;
}

/** Who may do what, by experiment. */
export function Grants() {
	const { list, wrong } = useTokens();
	const rows = list?.filter((t) => t.state === 'valid').flatMap((t): Granted[] =>
		grantsOf(t.experiments, t.scope).map((g) => ({ ...g, token: t })))
		.sort((a, b) => a.name.localeCompare(b.name)) ?? null;
	return (
		<>
			<p class="dim">What each token may do in which experiments. The most specific grant decides.</p>
			{wrong}
			<List label="Grants" rows={rows} id={(g) => `${g.name}=${g.token.name}`} none="No grants yet"
				texts={(g) => [g.name, g.token.person, g.token.name]} columns={[
					{ head: 'Experiments', cell: (g) => whereText([g.name]) },
					{ head: 'May do', cell: (g) => levelWord(g.level) },
					{ head: 'Person', cell: (g) => g.token.person },
					{ head: 'Token', cell: (g) => g.token.name },
				]} />
		</>
	);
}
