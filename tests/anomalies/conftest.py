"""The fixtures of a shop and of a history of its own, for the tests of this folder."""

from tests.service.conftest import store  # noqa: F401
from tests.shop import another_shop, runtime, shop, three_weeks, three_weeks_file, world  # noqa: F401
