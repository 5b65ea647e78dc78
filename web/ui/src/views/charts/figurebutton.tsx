// SPDX-License-Identifier: Apache-2.0
// A button that makes a figure of a chart outside of the grid.
import { useSignal } from '@preact/signals';
import type { LineChart } from '../../charts/line/index.ts';
import { lazy } from '../base/lazy.tsx';
import type { MakeSource } from './figuredialog.tsx';

export type { FigureSettings, Item } from './figure.ts';
export type { MakeSource };

const FigureDialog = lazy(() => import('./figuredialog.tsx').then((m) => m.FigureDialog));

/** of: the chart of lines as it is then, or what makes the source of another. */
export function FigureButton({ of, name }: { of: () => LineChart | MakeSource | null; name: string }) {
	const open = useSignal(false);
	return (
		<><button type="button" class="quiet" data-here aria-label={`Figure of ${name}`} title="Make a figure"
			onClick={() => (open.value = true)}>Figure</button>
			{open.value && <FigureDialog of={of()} metric="" name={name}
				close={() => (open.value = false)} />}</>
	);
}
