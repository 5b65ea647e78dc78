// SPDX-License-Identifier: Apache-2.0
// Installs the packages of package-lock.json that this platform needs into DIR/node_modules, without npm: Debian's npm
// brings 370 packages. curl downloads the archives, each is compared with the SHA-512 of the lock file, tar unpacks it.
// The variable npm_config_registry names another registry. Usage: node packages.mjs DIR
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

const registry = (process.env.npm_config_registry ?? 'https://registry.npmjs.org').replace(/\/+$/, '');
const out = path.resolve(process.argv[2]);

/** Whether a list such as os or cpu, absent where everything will do, has the value. */
const allows = (list, value) => !list || list.includes(value);

/** Name, address, integrity, archive and folder of each package. */
function wanted() {
	const lock = JSON.parse(readFileSync(new URL('package-lock.json', import.meta.url), 'utf8'));
	return Object.entries(lock.packages)
		.filter(([key, p]) => key && allows(p.os, process.platform) && allows(p.cpu, process.arch))
		.map(([key, { version, integrity }], i) => {
			const name = key.slice(key.lastIndexOf('node_modules/') + 'node_modules/'.length);
			return {
				name, integrity,
				url: `${registry}/${name}/-/${path.basename(name)}-${version}.tgz`,
				archive: path.join(out, 'node_modules', `${i}.tgz`),
				folder: path.join(out, key),
			};
		});
}

function run(command, args) {
	const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
	if (status !== 0) throw new Error(`${command} failed${error ? `: ${error.message}` : ''}`);
}

function unpack({ name, integrity, archive, folder }) {
	const digest = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
	if (digest !== integrity)
		throw new Error(`${name}: the archive has ${digest}, package-lock.json has ${integrity}`);
	mkdirSync(folder, { recursive: true });
	run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1', '--no-same-owner']);
	rmSync(archive);
}

try {
	const packages = wanted();
	rmSync(path.join(out, 'node_modules'), { recursive: true, force: true });
	mkdirSync(path.join(out, 'node_modules'), { recursive: true });
	run('curl', ['-fsSL', '--fail-early', '--retry', '3', ...packages.flatMap((p) => ['-o', p.archive, p.url])]);
	packages.forEach(unpack);
} catch (e) {
	console.error(`packages.mjs: ${e.message}`);
	process.exit(1);
}
