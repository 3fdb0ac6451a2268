"""Great Expectations on an embedded DuckDB: engine, own expectations, suites."""

import os

from monitor.rules.gx.deferred import defer, hide

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")  # before anything imports GX, which reads it once
# Great Expectations imports it for three statistical expectations; it costs 55 MiB and a second.
defer("scipy.stats")
# It draws the plots of one expectation, for pages that are never built: 24 MiB.
defer("altair")
# Great Expectations takes every optional package that it finds. Of these it would use nothing here: its own
# reading of S3 (7 MiB), and Spark Connect, which no engine's `url` can name (14 MiB).
hide("great_expectations.compatibility.aws", "boto3", "botocore")
hide("great_expectations.compatibility.pyspark", "pyspark.sql.connect")
