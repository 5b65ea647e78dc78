# Jobs on several machines, whose part network namespaces play.
TESTS += tests/nodes/meetings.py
EXTRA_DIST += tests/nodes/meetings.py tests/nodes/spaces.py
