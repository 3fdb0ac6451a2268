"""The dashboard of the models: AUC by split, the gaps with what explains them, the features that differ."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.actions import panel
from grafana.panels import OURS, Panel, counted, graph, number, ours, timeline
from grafana.states import NOT_JUDGED, VIOLATED
from monitor.catalogue import ALL_SPECS
from monitor.models.feature_specs import FEATURE_LABEL
from monitor.models.specs import AUC_GAP, AUC_GAP_CAUSE, SAMPLE_ROWS

OF_SAMPLES = ours('split!=""')
"""The AUC and related metrics of a model's samples. Series without a split are of exposures and feedback."""
_SHOWN = (AUC_GAP, AUC_GAP_CAUSE, SAMPLE_ROWS)
_MOST = 10
_HALF = 12


def gaps() -> Sequence[Panel]:
    """The verdicts on the gaps, the gaps with their intervals, and the causes of those that are violated."""
    return (
        number(
            "AUC gaps violated",
            "AUC gaps between splits whose whole interval is above the allowed gap.",
            counted("recsys_auc_gap_status", VIOLATED),
            bad_from=1,
        ).span(_HALF),
        number(
            "AUC gaps not judged",
            "Gaps without a verdict in the last window: too few samples, late, or an error.",
            counted("recsys_auc_gap_status", NOT_JUDGED),
        ).span(_HALF),
        timeline(
            "AUC gaps",
            "The current verdict on every gap.",
            "recsys_auc_gap_status",
            ("recommender", "pair", "model"),
            "{{recommender}} {{pair}} {{model}}",
            page="#models",
        ),
        panel(AUC_GAP),
        panel(AUC_GAP_CAUSE),
        graph(
            "Causes without a share",
            "1 for a cause of a violated gap whose share is unknown, though it has evidence; 0 for others.",
            [
                (
                    f"recsys_auc_gap_cause_unknown_share{OURS} or 0 * recsys_auc_gap_cause_ratio{OURS}",
                    "{{recommender}} {{pair}} {{model}} {{cause}}",
                )
            ],
            unit="short",
        ),
    )


def splits() -> Sequence[Panel]:
    """What is measured for each split: the AUC and related metrics, and the number of samples."""
    by_split = [panel(spec, OF_SAMPLES, spec.of_samples) for spec in ALL_SPECS.values() if spec.of_samples]
    return (*by_split, panel(SAMPLE_ROWS))


def features() -> Sequence[Panel]:
    """All other metrics of models; of the features only those that differ most."""
    left = [spec for spec in ALL_SPECS.values() if spec.kind.is_of_models and spec not in _SHOWN]
    return [panel(spec, most=_MOST if FEATURE_LABEL in spec.labels else None) for spec in left]
