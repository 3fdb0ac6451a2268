"""The names of metrics as people write them: nDCG, MAE, CTR."""

from __future__ import annotations

from typing import Final

NAMES: Final = {
    "action_rate": "Action rate (CTR for clicks)",
    "auc": "AUC",
    "user_auc": "AUC within users (GAUC)",
    "auc_gap": "AUC gap",
    "auc_gap_cause": "Causes of AUC gaps",
    "average_precision": "MAP (average precision)",
    "average_precision_full": "MAP over all relevant items",
    "f_score": "F-score",
    "item_to_item_recall": "Item-to-item recall",
    "log_loss": "Log loss",
    "mae": "MAE",
    "ndcg": "nDCG",
    "nmae": "NMAE",
    "nrmse": "NRMSE",
    "reciprocal_rank": "MRR (reciprocal rank)",
    "rmse": "RMSE",
    "experiment_action_rate": "Action rate by arm",
    "experiment_actions_per_user": "Actions per user by arm",
    "experiment_bucket_p_value": "p-value of the buckets",
    "experiment_conversion": "Conversion by arm",
    "experiment_difference": "Difference from the control",
    "experiment_difference_p_value": "p-value of the difference",
    "experiment_layer_p_value": "p-value of layers against each other",
    "experiment_mixed_users": "Users in several arms",
    "experiment_share": "Share of the users by arm",
    "experiment_split_p_value": "p-value of the split (SRM)",
    "experiment_unknown_arm_users": "Users in unknown arms",
    "experiment_users": "Users by arm",
    "experiment_value_per_user": "Value per user by arm",
}
"""Names that do not follow from the name in the catalogue."""


def title_of(name: str) -> str:
    """The name of a metric on a board.

    >>> title_of("ndcg"), title_of("top_user_share")
    ('nDCG', 'Top user share')
    """
    words = name.replace("_", " ")
    return NAMES.get(name, words[0].upper() + words[1:])
