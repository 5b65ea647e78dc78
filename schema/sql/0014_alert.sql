-- Version 14: alert rules for runs, and the alerts that they fired.

-- experiment_id -1: all. kind: metric (its max above, or min below bound), nan (of the metric, '' any), failed, silent (for
-- bound seconds), done. Only runs changed after since_rev (the largest run.rev when the rule was created) are evaluated.
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

-- A rule fires once per run. due_ms: when to post the alert, or when its claim by a process expires; NULL: not to be posted.
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
