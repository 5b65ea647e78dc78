# Preparation, the step, the loop, the report.
