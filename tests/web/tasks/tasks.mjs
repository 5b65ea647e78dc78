// SPDX-License-Identifier: Apache-2.0
// The tasks of a reader who compares runs: name, part of the page, start address (at), and how to do it by keys alone.
// tasks_test.mjs runs them in a wide window and in one of 390 px.
// k.window: a word for the window and its theme, for names that must be unique.
// k.narrow: a narrow window, where cards replace the rows of the table.
//
// k.reach(selector): press Tab until the focus arrives; k.enter: the same, then Enter; k.press(key, …); k.type(text).
// k.at(selector): wait until the page moves the focus there.
// k.says(selector, pattern), k.lines(chart, n), k.address(pattern) and k.gone(selector) check the result;
// k.whole(): checks that no panel is cut off.
export const tasks = [
	{ name: 'seeds as one line and one row', part: 'groups', at: '?e=sweep', async act(k) {
		await k.enter('button:text-is("Group by all but seed")');
		await k.lines('train/loss', 4);
	} },
	{ name: 'the standard error around the mean of a group', part: 'groups', at: '?e=sweep&by=lr', async act(k) {
		await k.reach('select[aria-label="Band"]');
		await k.press('ArrowDown', 'ArrowDown');
		await k.address(/band=se/);
	} },
	{ name: 'any two columns as points, with the Pareto front', part: 'why', at: '?e=sweep', async act(k) {
		await k.enter('section[aria-label="Scatter"] h2 button');
		await k.enter('.scatter button[aria-label^="Colour:"]');
		await k.whole();
		await k.type('wd');
		await k.press('Enter');
		await k.address(/sc=.*wd/);
		await k.enter('button:text-is("Pareto front")');
		await k.address(/front/);
	} },
	{ name: 'what points show, in words and as a table', part: 'why', at: '?e=sweep&sc=p:lr', async act(k) {
		await k.says('.scatter .said', /^12 points\. (Cannot tell|Higher).*Best acc/);
		await k.enter('.scatter button:text-is("Table")');
		await k.says('.values caption', /^Scatter: 12 runs/);
		await k.whole();
		await k.press('Escape');
		await k.gone('.values');
	} },
	{ name: 'points picked between two runs', part: 'why', at: '?e=sweep&sc=p:lr', async act(k) {
		await k.reach('[data-scatter]');
		await k.press('ArrowRight', 'Space', 'ArrowRight', 'ArrowRight', 'Space');
		await k.says('.scatter .options', /\d+ runs/);
		await k.enter('.scatter button:has-text("only these")');
		await k.address(/only|s=|o=/);
	} },
	{ name: 'a range of an axis, from one run to another', part: 'why', at: '?e=sweep&par', async act(k) {
		await k.reach('[data-parallel]');
		await k.press('ArrowLeft', 'ArrowDown', 'Space', 'ArrowDown', 'ArrowDown', 'Space');
		await k.says('.parallel .options', /3 runs within/);
		await k.says('.parallel .said', /^12 lines\./);
	} },
	{ name: 'which params matter, and which are undecided', part: 'why', at: '?e=sweep', async act(k) {
		await k.enter('section[aria-label="Importance"] h2 button');
		await k.says('.importance', /Share of the variance|Needs \d+ runs/);
	} },
	{ name: 'a pivot of two params, its best runs in the charts', part: 'why', at: '?e=sweep', async act(k) {
		await k.enter('section[aria-label="Pivot"] h2 button');
		await k.says('.pivot', /± .* n 3/);
		await k.enter('.pivot td.best button');
		await k.lines('train/loss', 3);
	} },
	{ name: 'runs within a range of parallel axes', part: 'why', at: '?e=sweep&br=0~0.5~lr', async act(k) {
		await k.enter('section[aria-label="Params and goal"] h2 button');
		await k.says('.parallel .options', /6 runs within/);
		await k.enter('.parallel button:has-text("only these")');
		await k.lines('train/loss', 6);
	} },
	{ name: 'two metrics in one chart', part: 'panels', at: '?e=sweep', async act(k) {
		await k.enter('button:text-is("Add panel")');
		await k.enter('.panel button[aria-label^="Metrics:"]');
		await k.whole();
		await k.press('Escape');
		await k.reach('.panel .pattern');
		await k.type('loss$');
		await k.press('Enter');
		await k.address(/pn=/);
		await k.says('.panel', /Metrics|pattern/);
	} },
	{ name: 'a formula as a chart', part: 'panels', at: '?e=sweep&pn=', async act(k) {
		await k.reach('.panel .pattern');
		await k.type('= train/loss * 2');
		await k.press('Enter');
		await k.lines('panel = train/loss * 2', 12);
	} },
	{ name: 'curves over the time of day', part: 'panels', at: '?e=sweep', async act(k) {
		await k.enter('[aria-label="X axis"] button:text-is("Clock")');
		await k.address(/x=clock/);
	} },
	{ name: 'the values of a chart as a table', part: 'panels', at: '?e=sweep', async act(k) {
		await k.enter('figure:has([data-chart="train/loss"]) button:text-is("Table")');
		await k.says('.values caption', /train\/loss: 12 lines/);
		await k.whole();
		await k.press('Escape');
		await k.gone('.values');
	} },
	{ name: 'the ends of the y axis', part: 'panels', at: '?e=sweep', async act(k) {
		await k.enter('figure:has([data-chart="train/loss"]) .limits button:text-is("Y axis")');
		await k.reach('[aria-label="Y axis: To"]');
		await k.whole();
		await k.type('0.5');
		await k.press('Tab');
		await k.address(/y=~0\.5~train/);
	} },
	{ name: 'a picture of an earlier step', part: 'media', at: '?e=told&r=ONE&t=media', async act(k) {
		await k.reach('[data-media="seen/picture"] input[type=range]');
		await k.press('Home');
		await k.says('[data-media="seen/picture"]', /step 0, 1 of 4/);
	} },
	{ name: 'what changed in a text since the step before', part: 'media', at: '?e=told&r=ONE&t=media',
		async act(k) {
		await k.reach('[data-media="seen/words"] input[type=checkbox]');
		await k.press('Space');
		await k.says('[data-media="seen/words"] ins', /30/);
	} },
	{ name: 'a line of the console by a word, and the lines around it', part: 'console',
		at: '?e=told&r=ONE&x=clock&t=console', async act(k) {
			await k.reach('.console input[type=search]');
			await k.type('needle');
			await k.says('.console .screen', /needle 700$/);
			await k.enter('.console .line button');
			await k.says('.console .marked', /needle/);
			await k.at('.console .marked button');
			await k.press('ArrowDown', 'Enter');
			await k.says('.console .marked', /line 701$/);
		} },
	{ name: 'two runs side by side, differences only', part: 'side by side', at: '?e=told&side', async act(k) {
		await k.says('.side', /numpy/);
		await k.reach('[aria-label="Find a name"]');
		await k.type('lr');
		await k.says('.side tbody[aria-label=Params]', /0\.(1.*0\.2|2.*0\.1)/);
	} },
	{ name: 'a param of a run among many', part: 'run page', at: '?e=sweep&r=RUN', async act(k) {
		await k.reach('[aria-label="Find in Params"]');
		await k.type('wd');
		await k.says('section:has([aria-label="Find in Params"]) dl', /^wd/);
	} },
	{ name: 'the next run of the table', part: 'run page', at: '?e=sweep&r=RUN', async act(k) {
		await k.reach('[aria-label="Next run"]');
		await k.press('n');
		await k.reach('[aria-label="Previous run"]');
	} },
	{ name: 'the time of each rank at a step, in words and as a table', part: 'run page',
		at: '?e=ranks&r=RANKED&t=system',
		async act(k) {
			const card = '.ranked:has([data-rank-chart="phase/forward"])';
			await k.reach('[data-rank-chart="phase/forward"]');
			await k.lines('phase/forward', 16);
			await k.press('Home');
			await k.says(`${card} .readout`, /^step 1: rank 1 0\.7, /);
			await k.says(`${card} .said`, /^20 ranks\. Highest mean: rank 1/);
			await k.says(`${card} figcaption`, /the 12 highest and the 4 lowest of 20 ranks/);
			await k.enter(`${card} button:text-is("Table")`);
			await k.says('.values caption', /phase\/forward by rank: 20 lines/);
			await k.says('.values thead', /^RankLowestHighest1510152025/);
		} },
	{ name: 'when a rank was slower than the others', part: 'run page', at: '?e=ranks&r=RANKED&t=timeline',
		async act(k) {
		await k.reach('.heat canvas');
		await k.press('ArrowDown');
		await k.says('.ranks .readout', /^rank 1, step 1: .* 40 % more than the usual rank$/);
		await k.reach('.ranks input[type=checkbox]');
		await k.press('Space');
		await k.enter('.ranks button:text-is("Table")');
		await k.says('.ranks .values caption', /Own time .*: 20 ranks/);
		await k.says('.ranks .values tbody tr:nth-child(2)', /^rank 1700 ms700 ms40 %100 %$/);
	} },
	{ name: 'a run as the baseline of the others', part: 'table', at: '?e=sweep', async act(k) {
		if (k.narrow) {
			await k.enter('.cards .name');
			await k.enter('.runhead button[aria-label^="More for"]');
			await k.enter('.runhead .item:text-is("Set as baseline")');
			await k.enter('.runhead a:text-is("All runs")');
			await k.says('.cards .value', /baseline/);
		} else {
			await k.reach('.grid [tabindex="0"]');
			await k.press('ArrowDown', 'b');
		}
		await k.address(/base=/);
		await k.says('.facts', /Baseline/);
	} },
	{ name: 'a column computed by a formula', part: 'table', at: '?e=sweep&c=p:lr', async act(k) {
		await (k.narrow ? k.tool('Columns') : k.enter('.head button:text-is("Columns")'));
		await k.reach('[aria-label="Find a column"]');
		await k.whole();
		await k.type('= params.lr * 100');
		await k.press('Enter', 'Escape');
		if (k.narrow) return k.says('.cards .what', /params\.lr ?\* 100 10/);
		await k.says('.grid .head', /params\.lr ?\* 100/);
		await k.says('.grid .body .row[aria-rowindex="2"]', /10|100/);
	} },
	{ name: 'a column moved', part: 'table', at: '?e=sweep&c=p:lr&c=p:wd', async act(k) {
		if (k.narrow) {
			await k.tool('Columns');
			await k.enter('[aria-label="Earlier: wd"]');
			await k.press('Escape');
			await k.says('.cards .what', /^wd [02]lr/);
		} else {
			await k.reach('.grid [tabindex="0"]');
			await k.press('ArrowUp', 'ArrowRight', 'Alt+ArrowRight');
		}
		await k.address(/c=p:wd&c=p:lr/);
	} },
	{ name: 'the table as Markdown', part: 'table', at: '?e=sweep', async act(k) {
		await k.tool('Copy table');
		await k.enter('[role=dialog] button:text-is("Markdown")');
		await k.says('[role=dialog] [role=status]', /copied|selected/);
	} },
	{ name: 'an experiment found by words', part: 'overview', at: '?all', async act(k) {
		await k.reach('[aria-label="Find experiments"]');
		await k.type('team two');
		await k.enter('main a:text-is("team/two")');
		await k.address(/e=team\/two/);
	} },
	{ name: 'a view saved', part: 'views', at: '?e=sweep&log', async act(k) {
		await (k.narrow ? k.tool('Saved views') : k.enter('.head button:text-is("Views")'));
		await k.reach('[aria-label="Name of the view"]');
		await k.type('by hand');
		await k.press('Enter');
		await k.says('.savedline', /by hand/);
	} },
	{ name: 'a report begun', part: 'reports', at: '?e=sweep&report', async act(k) {
		await k.reach('[aria-label="Name of the report"]');
		await k.type('by hand ' + k.window);
		await k.press('Enter');
		await k.address(/report=\d+/);
	} },
	{ name: 'an alert when a metric is above a bound', part: 'alerts', at: '?e=sweep&alerts', async act(k) {
		await k.reach('[aria-label="Metric"]');
		await k.type('train/loss');
		await k.reach('[aria-label="Bound"]');
		await k.type('5');
		await k.enter('main button:text-is("Add rule")');
		await k.says('.alerts .savedline', /train\/loss above 5/);
	} },
	{ name: 'the keys', part: 'keys', at: '?e=sweep', async act(k) {
		await k.press('?');
		await k.says('.keys', /Only this run in the charts/);
		await k.press('Escape');
		await k.gone('.keys');
	} },
];
