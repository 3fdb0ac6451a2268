"""Rows of the overview: the health metrics, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

from grafana.panels import OURS, Panel, graph, metric


def volumes() -> Sequence[Panel]:
    return (
        graph(
            "Volume",
            "Requests, users, exposures and distinct items of the window.",
            [(f"recsys_volume{OURS}", "{{recommender}} {{by}}")],
            of_the_past="volume",
            unit="short",
            logarithmic=True,
        ),
        metric("List length", "Mean number of items that a request gets.", "list_length", ""),
        graph(
            "Actions",
            "Actions of each event, with or without a list that they belong to.",
            [(f"recsys_action_volume{OURS}", "{{recommender}} {{event}}")],
            of_the_past="action_volume",
            unit="short",
        ),
        graph(
            "Catalog items",
            "Distinct items that the catalog holds.",
            [(f"recsys_catalog_items{OURS}", "{{recommender}}")],
            of_the_past="catalog_items",
            unit="short",
        ),
    )


def reach() -> Sequence[Panel]:
    return (
        metric(
            "Coverage",
            "Share of requests, users and catalog items that recommendations reach.",
            "coverage",
            "ratio",
            by=True,
        ),
        metric(
            "Failure", "Share of requests, or of users, that got an empty list.", "failure", "ratio", by=True
        ),
        metric(
            "Update rate",
            "Share of a list that is new compared with the user's previous list.",
            "update_rate",
            "ratio",
            by=True,
        ),
        metric(
            "Novelty",
            "Share of the items shown to a user that the user was not shown before.",
            "novelty",
            "ratio",
            by=True,
        ),
        graph(
            "Requests, users and items measured",
            "Samples behind coverage in the last window. Fewer samples make wider intervals.",
            [(f"recsys_coverage_samples{OURS}", "{{recommender}} {{by}}")],
            unit="short",
        ),
        graph(
            "Items that the catalog lacks",
            "Distinct items shown that the catalog does not hold, and exposures whose item has no category.",
            [
                (f"recsys_coverage_unknown_items{OURS}", "{{recommender}} unknown items"),
                (f"100 * recsys_unknown_category_ratio{OURS}", "{{recommender}} % without category"),
            ],
            of_the_past="coverage_unknown_items",
            unit="short",
        ),
    )


def variety() -> Sequence[Panel]:
    return (
        graph(
            "Concentration on few items",
            "Gini index of exposures, over all catalog items and over those shown. The Matthew effect says "
            "how much more concentrated exposures are than the users' own actions.",
            [
                (f"recsys_gini{OURS}", "{{recommender}} gini"),
                (f"recsys_gini_exposed{OURS}", "{{recommender}} gini, shown items"),
                (f"recsys_matthew_effect{OURS}", "{{recommender}} Matthew effect"),
            ],
            of_the_past="gini|gini_exposed|matthew_effect",
            unit="none",
        ),
        graph(
            "Share of the most shown items",
            "Share of all exposures that the single top item and the top 1 % and 10 % of items take.",
            [(f"recsys_popularity_share_ratio{OURS}", "{{recommender}} {{by}}")],
            of_the_past="popularity_share",
            unit="percentunit",
        ),
        metric(
            "Category entropy",
            "How evenly exposures spread over the categories: 0 one category, 1 all categories equal.",
            "category_entropy",
            "",
            by=True,
        ),
        metric(
            "Diversity within a list",
            "How different the items of one list are, on average.",
            "intra_list_diversity",
            "",
        ),
        graph(
            "Personalization",
            "How different the items of two users are: 0 all see the same, 1 nothing in common.",
            [(f"recsys_personalization{OURS}", "{{recommender}}")],
            of_the_past="personalization",
            unit="none",
        ),
        metric(
            "Self-information",
            "How surprising the items shown are: one bit more means that half as many users knew the item.",
            "self_information",
            "bits",
        ),
        metric(
            "Serendipity",
            "How different the items that users act on are from their earlier actions.",
            "serendipity",
            "",
        ),
        graph(
            "Average popularity",
            "How often the items shown now were shown (or acted on) in the history, on average.",
            [(f"recsys_average_popularity{OURS}", "{{recommender}}")],
            of_the_past="average_popularity",
            unit="short",
        ),
    )


def scores() -> Sequence[Panel]:
    return (
        metric(
            "Broken or suspicious scores",
            "Share of scores (or lists) by fault. `distinct` is the number of distinct scores divided by the "
            "number of scores.",
            "score_health",
            "ratio",
            by=True,
        ),
        graph(
            "Importance weights",
            "The smallest and the largest weight 1 / propensity. Huge weights make estimates a lottery.",
            [(f"recsys_importance_weight{OURS}", "{{recommender}} {{by}}")],
            of_the_past="importance_weight",
            unit="short",
            logarithmic=True,
        ),
        graph(
            "Effective sample size",
            "Number of equally weighted exposures that carry as much information as the weighted ones.",
            [
                (f"recsys_effective_sample_size{OURS}", "{{recommender}}"),
                (f"recsys_effective_sample_size_samples{OURS}", "{{recommender}} exposures"),
            ],
            of_the_past="effective_sample_size",
            unit="short",
            dashed=("B",),
        ),
        graph(
            "Low propensities",
            "Share of propensities below `min_propensity`.",
            [(f"recsys_low_propensity_ratio{OURS}", "{{recommender}}")],
            of_the_past="low_propensity",
            unit="percentunit",
        ),
    )
