"""The fixtures of a shop, for the tests of this folder."""

from tests.shop import runtime, shop, world  # noqa: F401
