"""Judges the logs of examples/ and writes what came out as a page: `python -m examples.describe > docs/examples.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from examples import off_policy
from monitor.cli.one_off import one_off
from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.core.results import Result, ResultKind
from monitor.logs.windows import Due
from monitor.report.numbers import number

HERE = Path(__file__).parent
OBD = """\
## A fashion shop: the Open Bandit Dataset's small sample

[examples/obd.yaml](../examples/obd.yaml): 40,000 requests of one item each, in two campaigns (men, women). For a week, two
policies served each campaign: one draws items at random, the other uses Bernoulli Thompson sampling (bts). One log and one
catalog serve four recommenders. The logged probability that the item was shown is read as `propensity`."""
OBD_SAYS = """\
The results show:

- **Concentration.** Random shows every item about equally often; bts settles on a few items. Both cover the whole catalog, so
  coverage alone would show no difference.
- **Importance weights.** Under bts some propensities fall to 1e-6. In the women's campaign one row outweighs all
  others: 10,000 rows are worth about 2 for an off-policy estimate. The rule `propensity_out_of_range` is violated, with
  the rows as evidence.
- **Clicks.** For men, bts gets 1.5 times as many clicks as random; for women, the same number. A list holds one item, so the
  metrics of lists are 1 for every list with a click, and mean nothing. The score is the propensity, which is the probability
  of a draw and not of a click, so `calibration` is far from 1.
- **No data.** Lists hold one item, so list diversity and entropy within a list are `no_data`. There is no history before the
  week, so novelty is `no_data` too. None of them is 0."""
OFF_POLICY = """\
### What would the other policy earn?

Both policies ran in the same week, so each can be estimated from the log of the other and compared with what it earned
itself. [examples/off_policy.py](../examples/off_policy.py) does it with `monitor.statistics.off_policy`; the
[statistics](statistics.md#what-would-another-policy-earn) describe the estimators. A column reads "men: random → bts" if the
log of random gives an estimate of the click rate of bts for men. Values have their interval of 95 %, by user."""
OFF_POLICY_SAYS = """\
How to read it:

- **The target's probabilities** are how often its own log shows an item at a position. The mean logged propensity of the rows
  that show the item would be too high, because bts changes during the week and shows an item more often while its propensity
  is high. These means add up to 1.7 to 3.4 at a position, where probabilities add up to 1.
- **What hits.** The intervals of IPS, self-normalised IPS and doubly robust contain the target's own click rate in all three
  columns that have values.
- **What misses.** The direct method is wrong for men in both directions: its interval does not contain the target's own
  click rate. With one or two clicks an item, its model knows little of the items that bts prefers. It also overrates the
  average item when it learns from bts. Its interval does not cover these errors. The
  model of [`estimate`](off-policy.md#the-model-of-the-reward) is fitted again without each group of users, and its wider
  interval contains the target's own click rate in all three columns.
- **What the log cannot answer.** The values of IPS are off by 18 to 36 % of the target's own rate. With 46 clicks in a log, the
  intervals are so wide that none of them says whether bts is better than random. For men, bts earned 1.5 times as much, and
  the estimate from random has the right direction but does not prove it.
- **Clipping.** Weights are cut at 10. No clicked row has a larger weight, so the values do not change. From bts to random the
  interval becomes narrower, but it is then an interval of a value without the cut weights.
- **No data.** For women, one row of bts has a weight of 22,525, so 10,000 rows are worth 2. There is no estimate."""
EBNERD = """\
## A news site: the sample of EB-NeRD

[examples/ebnerd.yaml](../examples/ebnerd.yaml): 10,848 exposures in lists of 4 to 81 articles, by day. There is no catalog and
there are no scores, so metrics that need them have no value. The authors of the sample shuffled the lists, so no rule looks at
positions."""


class Judged(NamedTuple):
    """A window of a recommender, with what both of its parts gave."""

    name: str
    due: Due
    results: list[Result]


def judge(config_path: Path) -> Iterator[Judged]:
    """Every window of every recommender of a config."""
    config = load_config(config_path)
    now = datetime.now(UTC)
    for checked in check_config(config, config_path.parent):
        with one_off(config, checked, "salt") as once:
            once.look(now)
            windows, _ = once.windows(None, None, now)
            found = once.judge(windows, now)
            for _, parts in groupby(found, key=lambda one: one.due.window):
                both = list(parts)
                yield Judged(checked.settings.name, both[0].due, [r for one in both for r in one.results])


def page() -> str:
    """The whole page."""
    shop = list(judge(HERE / "obd.yaml"))
    news = list(judge(HERE / "ebnerd.yaml"))
    return (
        "\n\n".join(
            [
                "# Results on two public logs",
                "<!-- Generated by `python -m examples.describe`; a test holds it against the code. -->",
                OBD,
                table([one.name for one in shop], [one.results for one in shop]),
                OBD_SAYS,
                OFF_POLICY,
                off_policy.table(),
                OFF_POLICY_SAYS,
                EBNERD,
                table([f"{one.due.window.start:%d %b}" for one in news], [one.results for one in news]),
            ]
        )
        + "\n"
    )


def table(titles: Sequence[str], columns: Sequence[Sequence[Result]]) -> str:
    """Results side by side: a value, or the status where there is none."""
    shown = [{_title(one): _cell(one) for one in found if _is_shown(one)} for found in columns]
    names = dict.fromkeys(name for found in shown for name in found)
    lines = [f"| | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}"]
    for name in names:
        lines.append(f"| {name} | {' | '.join(found.get(name, '') for found in shown)} |")
    return "\n".join(lines)


def _is_shown(result: Result) -> bool:
    """Whether a line of the table is about it: of the logs themselves only how many exposures there are."""
    counted = result.metric == "log_rows" and result.labels["log"] == "exposures"
    return "dimension" not in result.labels and (counted or result.kind is not ResultKind.LOG)


def _title(result: Result) -> str:
    if result.metric == "rule":
        return f"rule `{result.labels['rule']}`"
    own = (f"by {value}" if name == "by" else f"{name} {value}" for name, value in result.labels.items())
    return " ".join([f"`{result.metric}`", *own])


def _cell(result: Result) -> str:
    value = "" if result.value is None else number(result.value)
    return value if result.status == "ok" else f"{value} **{result.status}**".strip()


if __name__ == "__main__":
    sys.stdout.write(page())
