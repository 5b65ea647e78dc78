# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += schema/event/fields.def schema/event/limits.def schema/event/system.def
EXTRA_DIST += schema/api/routes.def schema/api/access.def schema/api/spaces.def schema/api/errors.def schema/api/mlflow_errors.def schema/api/openapi.json
EXTRA_DIST += schema/gen/reference.py
