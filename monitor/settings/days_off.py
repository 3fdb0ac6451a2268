"""The days on which users behave as on a Sunday: declared ones, and the public holidays of a country.

The public holidays come from the package `holidays`. It is imported only if a country is named.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator

from monitor.core.text import NAME_LENGTH, SETTING_LENGTH, cut, quoted
from monitor.settings.moments import within_range

_KNOWN_YEARS: Final = range(2000, 2041)  # a holiday that `working_days` names falls into one of them
_REMARK: Final = re.compile(r" \((?:observed|estimated)[^()]*\)$")


def is_day(text: str) -> bool:
    """Whether a text is a day in the form in which days are compared.

    >>> [is_day(text) for text in ("2028-02-29", "2026-02-29", "20260101", "2026-1-1")]
    [True, False, False, False]
    """
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _as_day(value: Any) -> date:
    if isinstance(value, str) and is_day(value):
        return within_range(date.fromisoformat(value))
    if type(value) is date:  # YAML's own form; a time is no day
        return within_range(value)
    raise ValueError(f"{quoted(value, NAME_LENGTH)} is not a day; write it as 2026-12-25")


def _known_country(code: str) -> str:
    """The code itself.

    Raises:
        ValueError: no country, or no part of it, has this code. It names the nearest ones.
    """
    country, _, part = code.partition("-")
    parts = _parts_of_countries()
    if country not in parts:
        raise ValueError(f"{quoted(code, NAME_LENGTH)} is not the code of a country; {_country_hint(code)}")
    if "-" in code and part not in parts[country]:
        raise ValueError(
            f"{quoted(code, NAME_LENGTH)} is not a part of {country}; {_part_hint(country, part)}"
        )
    return code


Day = Annotated[date, BeforeValidator(_as_day)]
Country = Annotated[str, AfterValidator(_known_country)]


@dataclass(frozen=True, slots=True)
class DaysOff:
    """The days that count as a Sunday, as texts: `"2026-12-25" in DaysOff(...)`.

    Attributes:
        declared: days that always belong to them.
        country: the code of a country or of a part of it, whose public holidays belong to them.
        working: public holidays that do not: days, or names in lower case.

    >>> days = DaysOff(frozenset({"2026-11-27"}), "US", frozenset({"veterans day"}))
    >>> ["2026-11-26" in days, "2026-11-27" in days, "2026-11-11" in days, "2026-11-10" in days]
    [True, True, False, False]
    """

    declared: frozenset[str]
    country: str | None = None
    working: frozenset[str] = frozenset()

    def __contains__(self, day: object) -> bool:
        if day in self.declared:
            return True
        if self.country is None or day in self.working or not isinstance(day, str) or not is_day(day):
            return False
        names = public_holidays(self.country, int(day[:4])).get(day)
        return names is not None and not names <= self.working


@lru_cache(maxsize=1024)
def public_holidays(country: str, year: int) -> Mapping[str, frozenset[str]]:
    """The names of each public holiday of a year, in lower case and in English where the package has it.

    Empty for a year of which the package knows nothing.

    >>> sorted(public_holidays("DE-BY", 2026)["2026-06-04"])
    ['corpus christi']
    """
    import holidays

    code, _, part = country.partition("-")
    known = holidays.country_holidays(code, subdiv=part or None, language="en_US", expand=False)
    if not known.start_year <= year <= known.end_year:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # India has a narrower range of years, and only warns about others
        found = holidays.country_holidays(
            code, subdiv=part or None, language="en_US", years=year, expand=False
        )
    return {
        day.isoformat(): frozenset(_REMARK.sub("", name).casefold() for name in found.get_list(day))
        for day in found
        if day.year == year
    }


def as_working_day(text: str, country: str) -> str:
    """The day or the holiday's name of `working_days`, as `DaysOff.working` has it.

    Raises:
        ValueError: it is no day, and the country has no public holiday of this name.
    """
    if is_day(text):
        return text
    names = _holiday_names(country)
    if (name := text.casefold()) in names:
        return name
    close = difflib.get_close_matches(name[:SETTING_LENGTH], names, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "write a day as 2026-12-25"
    raise ValueError(
        f"{quoted(text, NAME_LENGTH)} is neither a day nor a public holiday of {country}; {hint}"
    )


@cache
def _holiday_names(country: str) -> tuple[str, ...]:
    names = (names for year in _KNOWN_YEARS for names in public_holidays(country, year).values())
    return tuple(sorted(frozenset().union(*names)))


@cache
def _parts_of_countries() -> Mapping[str, frozenset[str]]:
    """The codes of all countries (ISO 3166-1), each with those of its parts that have own holidays."""
    from holidays import list_supported_countries

    known = list_supported_countries(include_aliases=False)
    return {country: frozenset(parts) for country, parts in known.items()}


def _country_hint(asked: str) -> str:
    from holidays.registry import COUNTRIES

    parts = _parts_of_countries()
    words: dict[str, str] = {}
    for module, names in COUNTRIES.items():  # united_kingdom: UnitedKingdom, GB, GBR, UK
        code = next((name for name in names if name in parts), None)
        if code is not None:
            words |= {word.casefold().replace("_", ""): code for word in (module, *names)}
    long = [one for one in words if len(one) > 3]
    country, _, part = asked[:SETTING_LENGTH].partition("-")
    word = country.strip().casefold().replace(" ", "").replace("_", "")
    close = [word] if word in words else difflib.get_close_matches(word, long, n=3, cutoff=0.7)
    codes = dict.fromkeys(words[one] for one in close)
    meant = [f"{code}-{part.upper()}" if part.upper() in parts[code] else code for code in codes]
    if meant:
        return f"did you mean {' or '.join(meant)}?"
    return "write its two letters of ISO 3166, as DE, or with a part of the country, as US-NY"


def _part_hint(country: str, asked: str) -> str:
    import holidays

    known = sorted(_parts_of_countries()[country])
    if not known:
        return f"it has no parts with holidays of their own, so write {country}"
    words = {alias.casefold(): part for alias, part in _aliases(getattr(holidays, country)).items()}
    words |= {part.casefold(): part for part in known}
    asked = asked[:SETTING_LENGTH].strip().casefold()
    close = [asked] if asked in words else difflib.get_close_matches(asked, words, n=3, cutoff=0.7)
    meant = dict.fromkeys(f"{country}-{words[one]}" for one in close)
    return f"did you mean {' or '.join(meant)}?" if meant else f"known are {cut(', '.join(known), 300)}"


def _aliases(calendar: Any) -> dict[str, str]:
    """The names of a country's parts, such as Bayern, with their codes."""
    return dict(calendar.subdivisions_aliases)
