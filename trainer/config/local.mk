# Flags and the resolved run configuration.
