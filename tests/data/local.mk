# tests/data
EXTRA_DIST += tests/data/lr_table.py
