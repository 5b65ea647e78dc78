// SPDX-License-Identifier: Apache-2.0
// One report: text and panels, older versions, and editing for users with write access.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { when } from '../../base/format.ts';
import { readReport, withFrozen } from '../../base/report.ts';
import { mayWrite } from '../../state/access.ts';
import { keepDraft, readDraft } from '../../state/draft.ts';
import * as s from '../../state/index.ts';
import { changeReport, freeze, frozenData, getReport, type Report } from '../../state/saved/reports.ts';
import { shared } from '../../state/shares.ts';
import { Empty, followed } from '../base/bits.tsx';
import { CopyLink } from '../base/copytext.tsx';
import { Markdown } from '../base/markdown.tsx';
import { NameForm } from '../base/nameform.tsx';
import { Share } from '../base/share.tsx';
import { Editor } from './editor.tsx';
import { saveOffline } from './offline.ts';
import { PanelFigure, titleOf } from './panel.tsx';

interface DocumentOptions {
	r: Report;
	/** Saves a new text; null if read-only or an older version. */
	put: ((text: string, seen?: string) => Promise<void>) | null;
	fail: (e: Error) => void;
}

function Parts({ r, put, fail }: DocumentOptions) {
	const toggle = (at: number, live: boolean) => {
		const text = live ? freeze(r, [at]) : Promise.resolve(withFrozen(r.text, at, null));
		text.then(put!).catch(fail);
	};
	return <>{readReport(r.text).parts.map((part, at) => {
		if ('text' in part) return <Markdown key={at} text={part.text} imageOf={() => null} below={1} />;
		const p = part.panel;
		return <PanelFigure key={at} p={p} experiment={p.experiment || r.experiment}
			name={`${titleOf(p)} (${at + 1})`}
			frozen={p.frozen === null ? null : frozenData(r.text, p.frozen)}
			toggle={put && (() => toggle(at, p.frozen === null))} />;
	})}</>;
}

/** Choice of a version, which does not change the report. */
function History({ r }: { r: Report }) {
	const newest = r.editions.at(-1)?.edition;
	return (
		<label>Version <select value={r.edition} onChange={(e) => {
			const n = Number(e.currentTarget.value);
			s.go({ edition: n === newest ? null : n }, true);
		}}>{[...r.editions].reverse().map((x) => (
			<option key={x.edition} value={x.edition}>{x.edition}, {when(x.time)}</option>))}
		</select></label>
	);
}

interface ToolOptions extends DocumentOptions {
	editing: Signal<boolean>;
	naming: Signal<boolean>;
	article: () => Element | null;
	/** Makes an older version the newest. */
	restore: (() => void) | null;
}

function Tools({ r, put, fail, editing, naming, article, restore }: ToolOptions) {
	const live = readReport(r.text).parts.flatMap((p, i) => ('panel' in p && p.panel.frozen === null ? [i] : []));
	const all = { page: 'report' as const, report: '', edition: null };
	return (
		<p class="options">
			{!shared.value && <><a class="button" href={s.addressOf(all)}
				onClick={followed(() => s.go(all, true))}>All reports</a>
				<History r={r} />
				<CopyLink to={{ page: 'report', report: r.id, experiment: r.experiment,
					edition: s.view.value.edition }} /></>}
			<Share kind="report" target={[r.id]} />
			{restore && <button type="button" onClick={restore}>Restore this version</button>}
			{put && <button type="button" disabled={editing.value}
				onClick={() => (editing.value = true)}>
				{readDraft('report-' + r.id) ? 'Continue draft' : 'Edit'}</button>}
			{put && <button type="button" onClick={() => (naming.value = true)}>Rename</button>}
			{put && live.length > 0 && <button type="button" title="Keep what every panel shows now"
				onClick={() => freeze(r, live).then(put).catch(fail)}>Freeze all</button>}
			<button type="button" title="One file that opens without a server"
				onClick={() => article() && saveOffline(article()!, r.name).catch(fail)}>
				Save as HTML</button>
		</p>
	);
}

function Whole({ r, may, took, fail }: { r: Report; may: boolean; took: (r: Report) => void;
	fail: (e: Error) => void; }) {
	const editing = useSignal(false);
	const naming = useSignal(false);
	const article = useRef<HTMLElement>(null);
	const old = r.edition !== r.editions.at(-1)?.edition;
	const write = async (text: string, seen = r.etag) => took(await changeReport(r.id, { text }, seen));
	const put = may && !old ? write : null;
	const restore = may && old
		? () => void write(r.text, '').then(() => s.go({ edition: null })).catch(fail) : null;
	return (
		<>
			<Tools r={r} put={put} fail={fail} editing={editing} naming={naming} restore={restore}
				article={() => article.current} />
			{naming.value && <NameForm was={r.name} close={() => (naming.value = false)}
				save={async (name) => took(await changeReport(r.id, { name }))} />}
			{editing.value && put && <Editor r={r} close={() => (editing.value = false)}
				reload={() => void getReport(r.id, null).then(took, fail)}
				preview={(text) => <Parts r={{ ...r, text }} put={null} fail={fail} />}
				save={async (text, seen) => {
					const saved = await changeReport(r.id, { text }, seen);
					keepDraft('report-' + r.id, null);
					editing.value = false;
					took(saved);
				}} />}
			{!editing.value && <article ref={article} class="reporttext" data-edition={r.edition}>
				<h1>{r.name}</h1>
				<p class="dim">{r.experiment}, version {r.edition} of {when(r.editions.find((x) =>
					x.edition === r.edition)?.time ?? r.changed)}
					{!old && r.by && `, by ${r.by}`}{old && ', not the newest'}</p>
				<Parts r={r} put={put} fail={fail} />
			</article>}
		</>
	);
}

export function Document({ id, edition }: { id: string; edition: number | null }) {
	const report = useSignal<Report | null>(null);
	const wrong = useSignal('');
	const fail = (e: Error) => (wrong.value = e.message);
	const took = (r: Report) => {
		wrong.value = '';
		report.value = r;
		document.title = `${r.name} · dptrack`;
	};
	useEffect(() => {
		let here = true;
		getReport(id, edition).then((r) => {
			if (!here) return;
			took(r);
			s.go({ experiment: r.experiment });
		}, (e: Error) => here && fail(e));
		return () => void (here = false);
	}, [id, edition]);
	const r = report.value;
	if (!r && wrong.value) return <Empty title="This report cannot be shown"><p>{wrong.value}</p></Empty>;
	if (!r) return <div class="wait" aria-busy="true" />;
	return <>
		{wrong.value && <p class="problem" role="alert">{wrong.value}</p>}
		<Whole key={r.edition} r={r} may={mayWrite(r.experiment)} took={took} fail={fail} />
	</>;
}
