"""Great Expectations on an embedded DuckDB: engine, own expectations, suites."""

from monitor.expectations.deferred import defer

# Great Expectations imports it for three statistical expectations; it costs 55 MiB and a second.
defer("scipy.stats")
