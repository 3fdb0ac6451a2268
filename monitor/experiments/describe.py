"""Writes docs/experiments.md: `python -m monitor.experiments.describe > docs/experiments.md`."""

from __future__ import annotations

import sys

from monitor.experiments.specs import EXPERIMENT_SPECS
from monitor.metrics.family import MetricSpec

_INTRODUCTION = """\
# Experiments

This page is generated from the code by `make docs`.

A recommender's exposures hold the arm of each user, and the config holds the intended split:

    experiments:
      - name: ranker
        column: arm                # of the exposures; null: not in the experiment
        split: {old: 1, new: 1}    # each arm and its share, in any unit
        control: old               # default: the first arm
        start: 2026-01-05T00:00:00Z
        buckets: {column: bucket, count: 1000}   # optional: is the hash uniform?
        alpha: 0.001
        metrics: [action_rate, conversion, actions_per_user, value_per_user]

Every key is in [config](config.md). Two experiments may share a column, usually one after the other.

## Is the split correct?

The check `experiments` judges this in every window, from the exposures alone. `user_id` identifies a user.
Users count once, over the whole life of the experiment: from the first window that begins at `start` or
later, up to the window in hand. Without a `start` the life begins with the first window of the log, or
that was kept of it; a long log is then read once as a whole, so give one.

- The users of each window are kept beside the history, in `kept/NAME/arms` of the state folder: user,
  arm, first window. The raw logs of earlier windows are not read again, logs may rotate, and the order in
  which windows are judged makes no difference. They are kept until the experiment leaves the config, or
  `start` moves on.
- A user who is seen in a second arm counts in none from then on (`experiment_mixed_users`). So the users
  of an arm can become fewer.
- The verdict is that of the *anytime-valid* test: it may be looked at after every window, for as long as
  the experiment runs, and calls a sound split broken with probability `alpha` at most, over all looks
  together. The classical chi-square beside it holds for one look; it is shown, and not judged.
- An arm that the split does not name breaks the split too: one user is enough.
- A broken split stays broken. Fix the cause, then move `start`.

Buckets and layers are tested on the users of the window alone, one look a window. Layers are
shown, but not judged.

A broken split is a ticket, [RecsysSampleRatioMismatch](runbooks/RecsysSampleRatioMismatch.md). So are buckets
far out of chance or more of them than there should be, and many users in several arms:
[RecsysAssignmentBroken](runbooks/RecsysAssignmentBroken.md). What the split's tests cannot see: users lost
from all arms alike, users who differ between the arms though they are as many, and users who come under a
new id.

## What do the arms change?

The check `experiment_arms` measures this once the actions have had time to arrive (see `attribution`), for
every event of `metrics.events`. It needs a feedback log. An action counts where a list of the
experiment held the item, for the user and the arm of the list; users in two arms are left out.

**Where the split is broken none of these has a value**: each says `undefined`, and why. They cannot be used.

All are of one window, so choose a `window` as long as what the experiment is to show. A window is one
look of many: of twenty 95 % intervals one misses by chance. The decision on an experiment takes a number
of users that is fixed beforehand; `recsys-monitor power` says how many.

The intervals are those of [statistics](statistics.md): Wilson for shares of users, the delta method with
users as units for actions per exposure, Welch for differences of means. In simulation (600 and 900 users,
very different in how often they come and how gladly they click) all of them hold the truth in 93 to 97 of
100 experiments.
"""


def page() -> str:
    """The whole page as Markdown."""
    lines = ["## All metrics\n", "| metric | labels | interval | what it says |", "|---|---|---|---|"]
    for spec in EXPERIMENT_SPECS.values():
        labels = ", ".join(f"`{label}`" for label in _labels(spec))
        lines.append(
            f"| [{spec.name}](#{spec.name}) | {labels} | {spec.interval or '-'} | {_cell(spec.help)} |"
        )
    return "\n".join([_INTRODUCTION, *lines, "", *map(_section, EXPERIMENT_SPECS.values())])


def _labels(spec: MetricSpec) -> tuple[str, ...]:
    return (*(["by"] if spec.by else []), *spec.labels)


def _section(spec: MetricSpec) -> str:
    rows = {
        "formula": spec.formula,
        "by": ", ".join(f"`{value}`" for value in spec.by),
        "answers": spec.answers,
        "where it misleads": spec.misleads,
        "samples": spec.samples,
        "`no_data`": spec.no_data,
        "`undefined`": spec.undefined or "never",
        "settings": ", ".join(f"[`metrics.{name}`](config.md)" for name in spec.parameters),
    }
    lines = [f"## {spec.name}\n", f"{spec.help}\n", "| | |", "|---|---|"]
    lines += [f"| {name} | {_cell(text)} |" for name, text in rows.items() if text]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
