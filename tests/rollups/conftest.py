"""The fixtures of a shop, for the tests of this folder."""

from tests.shop import another_shop, runtime, shop, world  # noqa: F401
