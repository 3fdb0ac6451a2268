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

An arm is a text. A whole number of the log is written as an integer, even if the log holds it as a float:
pandas does so if some rows have no arm. So the arms 0 and 1 are always `"0"` and `"1"`. A NaN is a null. A
text is taken as it is. So are the arms of CSV files and JSON lines: there `1.0` and `1` may be two arms.

## Is the split correct?

The check `experiments` judges this in every window, from the exposures alone. `user_id` identifies a user.
A user counts once from the start of the experiment up to the current window. The experiment starts with the
first window at `start` or later. Without `start` it starts with the first window of the log, or the first
window that was stored. A long log is then read once as a whole, so set `start`.

- The users of each window are stored beside the history, in `kept/NAME/arms` of the state folder: user,
  arm, first window. Earlier logs are not read again and may rotate, and windows may be judged in any order.
  The users are stored until you remove the experiment from the config or set a later `start`.
- A user who is seen in a second arm counts in no arm from then on (`experiment_mixed_users`). So the number
  of users in an arm can fall.
- The verdict comes from the *anytime-valid* test. You may look at it after every window, as long as the
  experiment runs: over all looks together, it calls a correct split broken with probability `alpha` at most.
  The classical chi-square test is valid for one look only. It is shown, but not judged.
- An arm that the split does not name also breaks the split: one user is enough.
- A broken split stays broken. Fix the cause, then set a later `start`.

Two more tests look at the users of each window alone:

- *Buckets*: many systems hash a user into one of `count` buckets, and give each arm a part of them. The test
  says whether all buckets hold equally many users.
- *Layers*: two experiments that run at the same time, each with all users, are two layers. The test says
  whether their arms are independent of each other. It is shown, but not judged.

A broken split is reported by the ticket [RecsysSampleRatioMismatch](runbooks/RecsysSampleRatioMismatch.md).
The ticket [RecsysAssignmentBroken](runbooks/RecsysAssignmentBroken.md) fires if the buckets are filled more
unevenly than by chance, if there are more buckets than configured, or if many users are in several arms. The
tests cannot see users who are lost from all arms alike, arms of the right size with different kinds of users,
or users who return under a new id.

## What do the arms change?

The check `experiment_arms` measures this once the actions have had time to arrive (see `attribution`), for
every event of `metrics.events`. It needs a feedback log. An action counts if a list of the experiment showed
the item to this user; it counts for the arm of that list. Users in two arms are left out.

**If the split is broken, these metrics have no value.** Each is `undefined` and says why.

Each value covers one window, so choose a `window` as long as the effect that you want to see. Of
twenty 95 % intervals, one misses the true value by chance, and you see one in every window. So do not decide
by the first window that looks good. Fix the number of users beforehand: `recsys-monitor power` computes it.

The intervals are described in [statistics](statistics.md): Wilson for shares of users, the delta method with
users as units for actions per exposure, Welch for differences of means. In simulations with 600 and 900
users, whose visits and click rates differ widely, each interval contains the true value in 93 to 97 of 100
experiments.
"""


def page() -> str:
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
