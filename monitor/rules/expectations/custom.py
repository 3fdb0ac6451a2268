"""The expectations that Great Expectations lacks and a recommender's rules need.

Importing this module registers them with GX, so a suite may name them by their type beside GX's own.
Each runs on DuckDB, and those that look at one table alone also run on pandas, with the same counts.
A missing value (NULL) is never judged by them. NaN is a value on DuckDB; pandas' own float columns
cannot tell NaN from a missing value, so GX leaves it out there.
"""

from __future__ import annotations

from monitor.rules.expectations.items import (
    ExpectColumnValuesToBeInCatalog,
    ExpectColumnValuesToBeOnShelf,
    ExpectColumnValuesToNotBeInListFile,
)
from monitor.rules.expectations.numbers import (
    ExpectColumnsToNotBeZero,
    ExpectColumnsToNotUnderflow,
    ExpectColumnValuesToBeFinite,
)

EXPECTATIONS = (
    ExpectColumnValuesToNotBeInListFile,
    ExpectColumnValuesToBeInCatalog,
    ExpectColumnValuesToBeOnShelf,
    ExpectColumnValuesToBeFinite,
    ExpectColumnsToNotBeZero,
    ExpectColumnsToNotUnderflow,
)
"""All of them; docs/rules.md has a section on each."""
