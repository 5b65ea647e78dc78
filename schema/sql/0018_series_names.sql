-- Version 18: dptrain renamed series; web/store/write/series_names.c has the same table for journals. A name that is taken stays.
UPDATE OR IGNORE key SET name = 'data/unreadable' WHERE name = 'data/broken';
UPDATE OR IGNORE key SET name = 'dead_units' || substr(name, 5) WHERE name GLOB 'dead/*';
UPDATE alert_rule SET metric = 'data/unreadable' WHERE metric = 'data/broken';
UPDATE alert_rule SET metric = 'dead_units' || substr(metric, 5) WHERE metric GLOB 'dead/*';
UPDATE alert_fired SET metric = 'data/unreadable' WHERE metric = 'data/broken';
UPDATE alert_fired SET metric = 'dead_units' || substr(metric, 5) WHERE metric GLOB 'dead/*';
PRAGMA user_version = 18;
