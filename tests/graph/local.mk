# tests/graph
