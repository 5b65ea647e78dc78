# tests/data
EXTRA_DIST += tests/data/lr_table.py
EXTRA_DIST += tests/data/safetensors_golden.py tests/data/golden.safetensors
dist_check_SCRIPTS += tests/data/bad_input.py
TESTS += tests/data/bad_input.py
EXTRA_DIST += tests/data/pictures.py tests/data/pictures
dist_check_SCRIPTS += tests/data/tokens.py
TESTS += tests/data/tokens.py
EXTRA_DIST += tests/data/make_bpe.py tests/data/bpe
