// SPDX-License-Identifier: Apache-2.0
// Sidebar: the pages, the experiments and the settings. Narrow windows show its icons alone, phones a bar at the bottom
// with a drawer for the rest.
import { signal } from '@preact/signals';
import { matchesWords, emptyView, type Page, type View } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { followed } from '../base/bits.tsx';
import { Icon, type IconName } from '../base/icon.tsx';
import { Brand } from './brand.tsx';

/** Experiments in the sidebar, and their number from which it searches them. */
const LISTED = 12;
const SEARCHED_FROM = 6;
/** On phones: the drawer is open. */
const drawer = signal(false);
const words = signal('');

interface Place {
	page: Page;
	icon: IconName;
	word: string;
	to: Partial<View>;
	/** Not in the bar of phones. */
	rest?: boolean;
}

function places(): Place[] {
	const { page } = s.view.value;
	const here = { ...emptyView, experiment: s.experiment.value };
	const away = page === 'run' || page === 'side' || page === 'compare';
	return [
		{ page: 'experiments', icon: 'experiments', word: 'Experiments', to: { page: 'experiments' } },
		{ page: 'compare', icon: 'runs', word: 'Runs', to: away ? { page: 'compare', run: null } : here },
		{ page: 'report', icon: 'reports', word: 'Reports', to: { ...here, page: 'report' } },
		{ page: 'models', icon: 'models', word: 'Models', to: { ...here, page: 'models' } },
		{ page: 'alerts', icon: 'alerts', word: 'Alerts', to: { ...here, page: 'alerts' }, rest: true },
		{ page: 'trash', icon: 'trash', word: 'Trash', to: { ...here, page: 'trash' }, rest: true },
	];
}

function go(to: Partial<View>): void {
	drawer.value = false;
	s.go(to, true);
}

const SETTINGS: Place = { page: 'settings', icon: 'settings', word: 'Settings', to: { page: 'settings', tab: '' } };

function Item({ p, now }: { p: Place; now: Page }) {
	return (
		<li class={p.rest ? 'rest' : ''}><a href={s.addressOf(p.to)} title={p.word}
			aria-current={p.page === now ? 'page' : undefined}
			onClick={followed(() => go(p.to))}><Icon name={p.icon} /><span>{p.word}</span></a></li>
	);
}

function Links() {
	const { page } = s.view.value;
	const now = page === 'run' || page === 'side' ? 'compare' : page;
	return <ul class="places">{places().map((p) => <Item key={p.page} p={p} now={now} />)}</ul>;
}

/** The experiments, most recently written first; the current one is always listed. */
function listed(): { name: string; runs: number; running: boolean }[] {
	const all = (s.experiments.value ?? []).filter((e) => e.run_count > 0 || e.id !== '0')
		.sort((a, b) => (b.last_time ?? 0) - (a.last_time ?? 0))
		.map((e) => ({ name: e.name, runs: e.run_count, running: e.running_count > 0, archived: e.archived }));
	const found = all.filter((e) => !e.archived && matchesWords(words.value, [e.name]));
	const here = s.experiment.value;
	const list = found.slice(0, LISTED);
	if (here === null || words.value !== '' || list.some((e) => e.name === here)) return list;
	return [all.find((e) => e.name === here) ?? { name: here, runs: s.runs.value.length, running: false }, ...list];
}

function Experiments() {
	const list = listed();
	const total = s.experiments.value?.length ?? 0;
	const open = (name: string) => {
		drawer.value = false;
		words.value = '';
		s.openExperiment(name);
	};
	return (
		<section class="exps" aria-label="Recent experiments">
			<h2>Recent</h2>
			{total > SEARCHED_FROM && <input type="search" placeholder="Find an experiment"
				aria-label="Find an experiment in the sidebar" value={words.value}
				onInput={(e) => (words.value = e.currentTarget.value)}
				onKeyDown={(e) => e.key === 'Enter' && list[0] && open(list[0].name)} />}
			<ul>{list.map((e) => (
				<li key={e.name}><a href={s.addressOf({ ...emptyView, experiment: e.name })}
					title={e.name} class={e.name === s.experiment.value ? 'here' : ''}
					onClick={followed(() => open(e.name))}><span>{e.name}</span>
					{e.running && <i class="live" title="Running" />}
					<small>{e.runs}</small></a></li>
			))}</ul>
			{words.value !== '' && !list.length && <p
				class="dim">No experiment contains “{words.value}”.</p>}
		</section>
	);
}

export function Nav() {
	const slim = s.slimSidebar.value;
	return (
		<nav class={'nav' + (slim ? ' slim' : '') + (drawer.value ? ' open' : '')} aria-label="Pages"
			onKeyDown={(e) => e.key === 'Escape' && (drawer.value = false)}>
			<div class="navtop"><Brand />
				<button type="button" class="quiet fold" onClick={s.toggleSidebar} aria-expanded={!slim}
					aria-label="Sidebar" title={slim ? 'Wide sidebar' : 'Icons only'}>
					<Icon name="less" /></button></div>
			<Links />
			<Experiments />
			<ul class="navend"><Item p={SETTINGS} now={s.view.value.page} /></ul>
			<button type="button" class="quiet menu" aria-expanded={drawer.value}
				onClick={() => (drawer.value = !drawer.value)}><Icon
					name="menu" /><span>Menu</span>
					</button>
		</nav>
	);
}
