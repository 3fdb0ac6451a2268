"""The fixtures of a shop, for the tests of this folder."""

from tests.shop import another_shop, runtime, shop, three_weeks, three_weeks_file, world  # noqa: F401
