-- What 0018_series_names.sql does.
UPDATE key SET name = 'data/unreadable' WHERE name = 'data/broken'
	AND NOT EXISTS (SELECT 1 FROM key AS taken WHERE taken.name = 'data/unreadable');
UPDATE key SET name = 'dead_units' || substr(name, 5) WHERE name LIKE 'dead/%'
	AND NOT EXISTS (SELECT 1 FROM key AS taken WHERE taken.name = 'dead_units' || substr(key.name, 5));
UPDATE alert_rule SET metric = 'data/unreadable' WHERE metric = 'data/broken';
UPDATE alert_rule SET metric = 'dead_units' || substr(metric, 5) WHERE metric LIKE 'dead/%';
UPDATE alert_fired SET metric = 'data/unreadable' WHERE metric = 'data/broken';
UPDATE alert_fired SET metric = 'dead_units' || substr(metric, 5) WHERE metric LIKE 'dead/%';
UPDATE meta SET value = '18' WHERE name = 'version';
