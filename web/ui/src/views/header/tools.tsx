// SPDX-License-Identifier: Apache-2.0
// Actions on the table and the view: saved views, bulk tag, export.
import { signal, useSignal, useSignalEffect, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import * as s from '../../state/index.ts';
import { followed, Opener, Panel } from '../base/bits.tsx';
import { Alerts } from '../alerts/alerts.tsx';
import { SavedViews } from '../saved/saved.tsx';
import { CopyTable } from '../table/copy.tsx';
import { saveTable } from '../table/csv.ts';
import { Picker } from '../table/picker.tsx';
import '../base/later.ts';
import { BulkTag } from './bulktag.tsx';
import { Manage } from './manage.tsx';

const viewing = signal(false);
const alerting = signal(false);
const tagging = signal(false);
const managing = signal(false);
const copying = signal(false);

interface Tool {
	word: string;
	open: Signal<boolean>;
	panel: (close: () => void) => ComponentChildren;
}

const ALERTS: Tool = { word: 'alerts', open: alerting, panel: (close) => <Alerts close={close} /> };
const TAG: Tool = { word: 'tag', open: tagging, panel: (close) => <BulkTag close={close} /> };
const RUNS: Tool = { word: 'runs', open: managing, panel: (close) => <Manage close={close} /> };
const COPY: Tool = { word: 'copy', open: copying, panel: (close) => <CopyTable close={close} /> };
/** In the header if there is room. */
const COLUMNS: Tool = { word: 'columns', open: signal(false), panel: (close) => <Picker close={close} /> };
const REPORTS = { page: 'report' as const, report: '', edition: null };

const saveCsv = () => saveTable(s.experiment.value ?? 'runs');

/** In a narrow window: a menu button. */
function More({ tools }: { tools: readonly Tool[] }) {
	const open = useSignal(false);
	const chosen = useSignal<Tool | null>(null);
	useSignalEffect(() => {
		if (!open.value) chosen.value = null;
	});
	const menu = (close: () => void) => (
		<Panel label="More" close={close}>
			<ul class="files">{tools.map((t) => <li key={t.word}><button type="button" class="quiet"
				onClick={() => (chosen.value = t)}>{t.word}</button></li>)}
				<li><button type="button" class="quiet" onClick={saveCsv}>CSV</button></li></ul>
		</Panel>
	);
	return <span class="slim"><Opener word="more" open={open}
		panel={(close) => (chosen.value ? chosen.value.panel(close) : menu(close))} /></span>;
}

export function Tools() {
	/* Shown while the session is unknown: a button must not move under a press. */
	const mayWrite = s.session.value?.mayWrite ?? true;
	const tools = mayWrite ? [ALERTS, TAG, RUNS, COPY] : [ALERTS, COPY];
	return (
		<>
			<span class="kept"><Opener word="views" open={viewing}
				panel={(close) => <SavedViews close={close} />} /></span>
			<a class="button roomy" href={s.addressOf(REPORTS)}
				onClick={followed(() => s.go(REPORTS, true))}
				title="texts with charts, live or frozen">reports</a>
			{tools.map((t) => <span key={t.word} class="spare"><Opener {...t} /></span>)}
			<More tools={[COLUMNS, ...tools]} />
			<button type="button" class="spare" onClick={saveCsv}
				title="the table as it is: its rows, its columns, every digit">CSV</button>
		</>
	);
}
