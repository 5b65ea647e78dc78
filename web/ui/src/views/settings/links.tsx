// SPDX-License-Identifier: Apache-2.0
// Providers, as the server is configured, and share links.
import { useSignal } from '@preact/signals';
import { when } from '../../base/format.ts';
import { getProviders, getShares, revokeShare } from '../../state/saved/settings.ts';
import { useLoaded } from '../base/bits.tsx';
import { AskButton, List, useAct } from '../base/lists/list.tsx';
import { grantsOf, MayDo } from './grants.tsx';

/** A grant of a group: a level in all experiments, or grants. */
const LEVEL = /^(none|read|write|admin)$/;

export function Providers() {
	const { value, wrong } = useLoaded(getProviders, []);
	return (
		<>
			<p class="dim">Who signs in by a provider has what its groups grant. The server reads this
				from the file of{' '}
				<code>--oidc</code> when it starts.</p>
			{wrong && <p class="problem" role="alert">{wrong}</p>}
			<List label="Providers" rows={value} id={(p) => p.name} columns={[
				{ head: 'Provider', cell: (p) => <>{p.label}<p class="dim detail">{p.issuer}</p></> },
				{ head: 'Client', cell: (p) => p.client_id },
				{ head: 'Redirect URI', cell: (p) => <code>{p.redirect_uri}</code>, wide: true },
				{ head: 'Groups', cell: (p) => <dl
					class="groups">{Object.entries(p.grants).map(([group, grant]) => (
					<div key={group}><dt>{group === '*' ? 'everybody' : group}</dt><dd><MayDo
						list={grantsOf(LEVEL.test(grant) ? null : grant,
							grant)} /></dd></div>))}</dl> },
			]} none={<p>No provider is configured: persons sign in by tokens. With{' '}
				<code>dptrack serve --oidc FILE</code> they sign in by Keycloak, Google, GitHub and
					others; the
				guide “Sign-in” has the file.</p>} />
		</>
	);
}

export function Links() {
	const rev = useSignal(0);
	const { value, wrong } = useLoaded(getShares, [rev.value]);
	const { act, said } = useAct();
	return (
		<>
			<p class="dim">A link shows one run, report, view or comparison without a token.</p>
			{said}{wrong && <p class="problem" role="alert">{wrong}</p>}
			<List label="Links" rows={value} id={(l) => l.id} texts={(l) => [l.name, l.kind, l.experiment,
				l.person, l.state]}
				none="No links yet: “Share” on a run, report, view or comparison makes one." columns={[
					{ head: 'Shows', cell: (l) => <>{l.name} <span class="dim">{l.kind}</span></> },
					{ head: 'Experiment', cell: (l) => l.experiment },
					{ head: 'Made by', cell: (l) => l.person },
					{ head: 'Made', cell: (l) => when(l.created_time), num: true, wide: true },
					{ head: 'Last opened', cell: (l) => when(l.used_time) || 'never', num: true },
					{ head: 'Ends', cell: (l) => l.state === 'valid' ? when(l.expires_time) :
						l.state, num: true },
				]}
				acts={(l) => l.state === 'valid' && <AskButton label="Revoke" word="Revoke"
					title={`Revoke the link to ${l.name}?`} act={() => act(() =>
						revokeShare(l.id).finally(() => rev.value++))}>
					<p>It shows nothing from now on. It cannot be undone.</p></AskButton>} />
		</>
	);
}
