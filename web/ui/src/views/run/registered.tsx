// SPDX-License-Identifier: Apache-2.0
// Model versions registered from a run.
import { emptyView } from '../../base/url.ts';
import * as s from '../../state/index.ts';
import { versionsOf } from '../../state/saved/registry.ts';
import { followed, useAsked } from '../base/bits.tsx';

export function Registered({ id }: { id: string }) {
	const list = useAsked(() => versionsOf(id), [id], s.report);
	if (!list?.length) return null;
	return (
		<section class="box">
			<h2>Registered as</h2>
			<ul class="files">{list.map((v) => {
				const to = { ...emptyView, page: 'models' as const, model: v.name };
				return <li key={v.name + v.version}><a href={s.addressOf(to)}
					onClick={followed(() => s.go(to, true))}>{v.name}</a> version {v.version}</li>;
			})}</ul>
		</section>
	);
}
