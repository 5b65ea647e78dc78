// SPDX-License-Identifier: Apache-2.0
// Settings: the look of the page, who one is and what one may do; for administrators persons, tokens, providers, share
// links, the audit log and retention.
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { mayRule } from '../../state/access.ts';
import * as s from '../../state/index.ts';
import { getTokens } from '../../state/saved/settings.ts';
import { asking } from '../base/asking.ts';
import { useAsked } from '../base/bits.tsx';
import { addStyles } from '../base/styles.ts';
import { Tabs } from '../base/lists/tabs.tsx';
import { chooseTheme, themeChoice, type ThemeChoice } from '../base/theme.ts';
import { Card, variables } from '../compare/noruns.tsx';
import { Header } from '../header/header.tsx';
import { Audit } from './audit.tsx';
import { grantsOf, MayDo } from './grants.tsx';
import { Links, Providers } from './links.tsx';
import { Retention } from './retention.tsx';
import { Grants, Persons, TokenList, Tokens } from './tokens.tsx';
import text from './settings.part.css';

addStyles(text);

const THEMES: [ThemeChoice, string][] = [['system', 'System'], ['light', 'Light'], ['dark', 'Dark']];

export function General() {
	const session = s.session.value;
	return (
		<>
			<h2 id="themes">Theme</h2>
			<p><span class="segmented" role="group" aria-labelledby="themes">{THEMES.map(([id, word]) => (
				<button key={id} type="button" aria-pressed={themeChoice() === id}
					onClick={() => chooseTheme(id)}>{word}</button>))}</span></p>
			<p><button type="button" onClick={() => (asking.value = true)}>Keyboard shortcuts <kbd>?</kbd>
				</button></p>
			<h2>You</h2>
			{!session?.scope ? <p>This server needs no token: everybody who reaches it may do everything.
				The
				first token closes it: <code>dptrack token add NAME --scope admin</code> on its
					machine.</p>
				: <><p>{session.person ? <>You are <b>{session.person}</b>. You may do this:</>
					: 'You use the token that the server was started with. You may do this:'}</p>
					<MayDo list={grantsOf(session.experiments ?? null, session.scope)} /></>}
			{session?.signed_in && <p><button type="button" onClick={() =>
				void s.endSession().then(() => location.reload(), s.report)}>Sign out</button></p>}
			{session?.person && <Own />}
		</>
	);
}

/** The person's own tokens. */
function Own() {
	const list = useAsked(() => getTokens(false), []);
	return <><h2>Your tokens</h2><TokenList list={list} /></>;
}

function Connect() {
	const scope = s.session.value?.scope;
	return <><p>Programs record here when these variables are set.{scope && <> Replace TOKEN by a token
		that may write.</>}</p>
		<div class="ways">{variables(scope ? 'TOKEN' : '').map((w) => <Card key={w.title} way={w} />)}</div></>;
}

type Tab = [string, string, ComponentType];

/** The tabs that the session may use. */
function tabs(): Tab[] {
	const all = mayRule(null);
	const rules = s.experiments.value?.some((e) => mayRule(e.name)) ?? false;
	const list: [boolean, ...Tab][] = [
		[true, '', 'General', General], [true, 'connect', 'Connect', Connect], [all, 'persons', 'Persons',
			Persons],
		[all, 'tokens', 'Tokens', Tokens], [all, 'grants', 'Grants', Grants], [all, 'providers', 'Sign-in',
			Providers],
		[all || rules, 'links', 'Share links', Links], [all || rules, 'retention', 'Retention', Retention],
		[all, 'audit', 'Audit log', Audit],
	];
	return list.filter(([may]) => may).map(([, ...tab]) => tab);
}

export function SettingsPage() {
	const list = tabs();
	const [tab, word, Body] = list.find(([id]) => id === s.view.value.tab) ?? list[0]!;
	useEffect(() => {
		document.title = `${tab ? word : 'Settings'} · dptrack`;
	}, [tab]);
	return (
		<><main class="page settings">
			<h1>Settings</h1>
			<Tabs label="Settings" tabs={list} tab={tab} />
			<Body />
		</main><Header /></>
	);
}
