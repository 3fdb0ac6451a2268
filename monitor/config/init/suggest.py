"""Suggests the rules, metrics and objectives that fit a log."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from monitor.config.init.guess import Guess
from monitor.config.init.neighbours import Neighbour
from monitor.config.init.profile import Profile
from monitor.config.init.template import comment
from monitor.config.init.traits import Traits
from monitor.core import columns as c
from monitor.rules.packs import pack_names

_MOSTLY = 0.99


def suggest_rules(
    found: Profile, guesses: Mapping[str, Guess], read: Traits | None, beside: Mapping[str, Neighbour]
) -> list[str]:
    """A line for each pack; a pack that does not fit the log is a comment that says why."""
    known = pack_names()
    lines = [
        "# - {pack: blacklist, parameters: {blacklist: blacklist.csv}} # a .csv with a column item_id",
        *_lists(read),
        "- {pack: frequency, parameters: {max_a_day: 20}} # one item for one user in a day",
        "- pack: time # rows with a time after their file was written",
        *_scores(guesses, read),
        *_importance(found, guesses),
        *_catalog(beside),
    ]
    return [
        line for line in lines if line.partition("pack: ")[2].split(",")[0].split(" ")[0].strip("}") in known
    ]


def _lists(read: Traits | None) -> list[str]:
    if read is None:
        return ["- pack: lists"]
    has_gaps = read.gaps is None or read.gaps > 1 - _MOSTLY
    disable = ", disable: [position_gaps]" if has_gaps else ""
    why = f"the longest list has {read.longest:,}"
    if has_gaps:
        why += "; no position is logged" if read.gaps is None else f"; {read.gaps:.0%} of the lists have gaps"
    most = max(100, 10 ** math.ceil(math.log10(max(read.longest, 1))))
    if read.duplicates:
        why += f"; {read.duplicates:.1%} of the lists show an item twice"
    return [f"- {{pack: lists, parameters: {{max_length: {most}, min_length: 1}}{disable}}}{comment(why)}"]


def _scores(guesses: Mapping[str, Guess], read: Traits | None) -> list[str]:
    if c.SCORE not in guesses or read is None or read.lowest is None or read.highest is None:
        return ["# - pack: scores # no score was found"]
    why = f"scores seen: {read.lowest:g} to {read.highest:g}"
    settings = ["min_score: 0, max_score: 1"]
    if read.lowest < 0 or read.highest > 1:
        settings = ["min_score: null, max_score: null, saturated_values: null"]
        why += "; give the range if there is one"
    elif read.saturated > 1 - _MOSTLY:
        settings.append("saturated_values: null")
        why += f"; {read.saturated:.0%} of them are 0 or 1"
    disable = ""
    if read.equal is None or read.equal > 1 - _MOSTLY:
        disable = ", disable: [scores_all_equal]"
        why += (
            "; no list has two scores"
            if read.equal is None
            else f"; all are equal in {read.equal:.0%} of the lists"
        )
    first = f"- {{pack: scores, parameters: {{{', '.join(settings)}}}{disable}}}{comment(why)}"
    lines = [first, "- pack: arithmetic # numbers so near to 0 that they lose digits; name denominators here"]
    if read.falling is None:
        return [*lines, "# - pack: order # needs lists of two items or more that have positions and scores"]
    if read.falling >= _MOSTLY:
        return [*lines, "- pack: order # scores fall with the position, as they should"]
    why = f"scores rise with the position in {1 - read.falling:.0%} of the neighbours: something reorders"
    return [*lines, f"# - pack: order{comment(why)}"]


def _importance(found: Profile, guesses: Mapping[str, Guess]) -> list[str]:
    if c.PROPENSITY not in guesses:
        return []
    lowest = found.column(guesses[c.PROPENSITY].column).lowest
    least = 0.001
    if lowest is not None and 0 < lowest < least:
        least = 10.0 ** math.floor(math.log10(lowest))
    return [
        f"- {{pack: importance, parameters: {{min_propensity: {np.format_float_positional(least)}}}}}"
        + comment(f"the smallest propensity seen is {lowest:g}" if lowest is not None else "")
    ]


def _catalog(beside: Mapping[str, Neighbour]) -> list[str]:
    catalog = beside.get(c.CATALOG)
    if catalog is None:
        return ["# - pack: catalog # items that the catalog does not know; needs logs.catalog"]
    lines = ["- pack: catalog # items that the catalog does not know"]
    if c.CATEGORY in catalog.guesses:
        lines.append("# - {pack: category, parameters: {max_per_category: 5}} # of one category in a list")
    return lines


def suggest_metrics(guesses: Mapping[str, Guess], read: Traits | None) -> list[str]:
    """Lines of the metrics' settings that follow from the scores."""
    if c.SCORE in guesses and read is not None and read.lowest is not None and read.highest is not None:
        if read.lowest >= 0 and read.highest <= 1:
            return ["score_range: [0, 1] # a guess: every score seen lies in it"]
        return ["# score_range: [0, 100] # scores outside of it are counted (score_health)"]
    return []


def suggest_objectives(guesses: Mapping[str, Guess], beside: Mapping[str, Neighbour]) -> list[str]:
    """Examples of objectives that fit the log."""
    lines = [
        "- {metric: coverage, labels: {by: pv}, min: 0.99} # requests that got a list",
        "- {metric: personalization, min: 0.1}",
    ]
    if c.CATALOG in beside:
        lines.append("- {metric: gini, max: 0.9} # how unevenly the catalog's items are shown")
    if c.PROPENSITY in guesses:
        lines.append("- {metric: effective_sample_size, min: 1000} # counted in exposures")
    return lines
