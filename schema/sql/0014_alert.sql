-- Version 14: rules that runs are held against, and what they found.

-- experiment_id -1: of every experiment. kind: metric (the metric's max above, or min below bound), nan (of the metric, '' of any),
-- failed, silent (for bound seconds), done. Runs that nobody changed since since_rev (the largest run.rev of that moment) are not looked at.
CREATE TABLE alert_rule (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	experiment_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	metric TEXT NOT NULL,
	above INTEGER NOT NULL,
	bound REAL NOT NULL,
	since_rev INTEGER NOT NULL,
	created_ms INTEGER NOT NULL
);

-- A rule finds a run once, whoever looks. due_ms: when it is to be posted, or its poster has had time enough; NULL: not, or no more.
CREATE TABLE alert_fired (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	rule_id INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	metric TEXT NOT NULL,
	step INTEGER NOT NULL,
	value REAL,
	text TEXT NOT NULL,
	time_ms INTEGER NOT NULL,
	due_ms INTEGER,
	tries INTEGER NOT NULL DEFAULT 0,
	posted_ms INTEGER,
	UNIQUE (rule_id, run_id)
);
CREATE INDEX alert_fired_by_run ON alert_fired (run_id);
CREATE INDEX alert_fired_due ON alert_fired (due_ms) WHERE due_ms IS NOT NULL;
PRAGMA user_version = 14;
