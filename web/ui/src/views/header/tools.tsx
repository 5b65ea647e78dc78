// What can be done with the table and the view: saved views, one tag for many runs, the table as a file or a text.
import { signal } from '@preact/signals';
import * as s from '../../state/index.ts';
import { followed, Opener } from '../base/bits.tsx';
import { Alerts } from '../alerts/alerts.tsx';
import { SavedViews } from '../saved/saved.tsx';
import { CopyTable } from '../table/copy.tsx';
import { saveTable } from '../table/csv.ts';
import '../base/later.ts';
import { BulkTag } from './bulktag.tsx';

const viewing = signal(false);
const alerting = signal(false);
const tagging = signal(false);
const copying = signal(false);

const REPORTS = { page: 'report' as const, report: '', edition: null };

export function Tools() {
	return (
		<>
			<span class="kept"><Opener word="views" open={viewing}
				panel={(close) => <SavedViews close={close} />} /></span>
			<a class="button roomy" href={s.addressOf(REPORTS)}
				onClick={followed(() => s.go(REPORTS, true))}
				title="texts with charts, live or frozen">reports</a>
			<span class="spare"><Opener word="alerts" open={alerting}
				panel={(close) => <Alerts close={close} />} /></span>
			{s.session.value?.mayWrite && <span class="spare"><Opener word="tag" open={tagging}
				panel={(close) => <BulkTag close={close} />} /></span>}
			<span class="spare"><Opener word="copy" open={copying}
				panel={(close) => <CopyTable close={close} />} /></span>
			<button type="button" title="the table as it is: its rows, its columns, every digit"
				onClick={() => saveTable(s.experiment.value ?? 'runs')}>CSV</button>
		</>
	);
}
