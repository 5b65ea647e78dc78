// SPDX-License-Identifier: Apache-2.0
// ?design=CHAPTER&theme=NAME: the specimens of a chapter, each in a section; data-ready once all are drawn.
import { render } from 'preact';
import { useEffect } from 'preact/hooks';
import '#ui/style.css';
import * as s from '#ui/state/index.ts';
import { Bulk } from '#ui/views/header/bulk.tsx';
import { Header, Nav } from '#ui/views/index.ts';
import { chooseTheme } from '#ui/views/base/theme.ts';
import { Keys } from '#ui/views/header/keys.tsx';
import { General } from '#ui/views/settings/settings.tsx';
import { Facts } from '#ui/views/compare/facts.tsx';
import { NoRuns } from '#ui/views/compare/noruns.tsx';
import { Toolbar } from '#ui/views/charts/grid.tsx';
import { Cards } from '#ui/views/table/cards.tsx';
import { Table } from '#ui/views/table/table.tsx';
import { CHAPTERS, type Chapter } from './specimens.tsx';

const nothing = () => {};

/** Parts of the first screen, with the twelve runs of the stand-in. */
const frame: Chapter = {
	'header wide': () => <Header />, 'facts of twelve runs wide': () => <Facts />, 'charts toolbar wide': () => <Toolbar />,
	'table wide': () => <Table />, 'cards wide': () => <Cards />,
	'bulk bar wide': () => <div style={{ height: '36px' }}><Bulk /></div>,
	'sidebar': () => <div class="app" style={{ display: 'block', height: '400px' }}><Nav /></div>,
	'settings': () => <div class="page"><General /></div>,
	'keys wide': () => <div style={{ transform: 'translateX(0)', height: '560px' }}><Keys close={nothing} /></div>,
	'nothing found wide': () => <NoRuns />,
};

const chapters: Record<string, Chapter> = { ...CHAPTERS, frame };
const asked = new URLSearchParams(location.search);
const chapter = asked.get('design') ?? 'tokens';
chooseTheme(asked.get('theme') === 'dark' ? 'dark' : 'light');
document.documentElement.dataset.theme = asked.get('theme') ?? 'light';

const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)];

/** Charts draw in the frame after they get their lines. */
const FRAMES = 3;

/** Cursors are placed in drawn charts, and the cards have their curves. */
const settled = () => !all('[data-read=wanted]').length
	&& all('.spark').every((e) => e.firstChild || !e.closest('.cards'));

function tellWhenSettled(frames: number): void {
	if (frames >= FRAMES && settled()) document.documentElement.dataset.ready = 'true';
	else requestAnimationFrame(() => tellWhenSettled(frames + 1));
}

function Page() {
	useEffect(() => tellWhenSettled(0), []);
	return <main style={{ padding: '8px', display: 'flex', flexWrap: 'wrap', gap: '8px', alignItems: 'flex-start' }}>
		{Object.entries(chapters[chapter] ?? {}).map(([name, of]) => (
			<section data-specimen={name} style={{ width: !name.endsWith('wide') ? '340px' : chapter === 'frame' ? '900px' : '640px',
				minHeight: /\bopen\b/.test(name) ? '260px' : '0', padding: '6px', position: 'relative',
				overflow: 'hidden', border: '1px solid var(--grid)' }}>{of()}</section>))}
	</main>;
}

document.documentElement.style.height = document.body.style.height = 'auto';
const show = () => render(<Page />, document.getElementById('app')!);
if (chapter !== 'frame') show();
else {
	void s.start();
	const wait = setInterval(() => {
		if (s.loading.value || s.runs.value.length < 12) return;
		clearInterval(wait);
		s.selectRuns(s.rows.value.slice(0, 3));
		show();
	}, 50);
}
