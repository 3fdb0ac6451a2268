"""What people call the columns and the events of their logs."""

from __future__ import annotations

import difflib
import re
from typing import Final

from monitor.core import columns as c

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    c.REQUEST_ID: (
        "request_id", "req_id", "impression_id", "impr_id", "imp_id", "recommendation_id", "rec_id",
        "reco_id", "slate_id", "list_id", "query_id", "search_id", "trace_id", "response_id", "serve_id",
        "page_view_id", "pageview_id", "pv_id", "call_id", "rid", "request", "request_uuid",
        "request_key", "correlation_id", "session_request_id", "session_id",
    ),
    c.USER_ID: (
        "user_id", "uid", "user", "customer_id", "customer", "visitor_id", "member_id", "client_id",
        "account_id", "viewer_id", "profile_id", "subscriber_id", "buyer_id", "person_id", "player_id",
        "cookie_id", "device_id", "user_key", "user_hash", "user_uuid", "guid", "msno", "session_id",
    ),
    c.TS: (
        "ts", "timestamp", "event_time", "event_ts", "event_timestamp", "request_time", "request_ts",
        "impression_time", "impression_ts", "served_at", "shown_at", "exposed_at", "exposure_time",
        "occurred_at", "logged_at", "log_time", "server_time", "created_at", "datetime", "date_time",
        "time", "time_ms", "ts_ms", "epoch", "epoch_ms", "unix_time", "unixtime", "event_date", "date", "dt",
    ),
    c.ITEM_ID: (
        "item_id", "item", "iid", "product_id", "product", "sku", "article_id", "article", "video_id",
        "movie_id", "song_id", "track_id", "content_id", "doc_id", "document_id", "news_id", "listing_id",
        "offer_id", "asin", "goods_id", "spu_id", "sku_id", "post_id", "book_id", "show_id", "title_id",
        "ad_id", "creative_id", "entity_id", "target_id", "recommended_item", "recommended_item_id",
        "recommendation", "candidate", "candidate_id", "shown_item", "article_ids_inview", "restaurant_id",
        "hotel_id", "job_id", "property_id", "recipe_id", "game_id", "app_id",
    ),
    c.POSITION: (
        "position", "pos", "rank", "slot", "display_position", "item_position", "item_rank", "list_position",
        "place", "index", "idx", "ordinal", "offset_in_list", "order",
    ),
    c.SCORE: (
        "score", "model_score", "prediction", "pred", "predicted_score", "prediction_score", "item_score",
        "rank_score", "ranking_score", "relevance", "relevance_score", "pctr", "p_ctr", "predicted_ctr",
        "probability", "prob", "logit", "confidence", "similarity", "affinity",
    ),
    c.PROPENSITY: (
        "propensity", "propensity_score", "pscore", "p_score", "action_prob", "action_probability",
        "logging_prob", "logging_probability", "behavior_prob", "selection_probability", "sampling_prob",
        "exploration_prob", "exposure_prob",
    ),
    c.SCENE: (
        "scene", "surface", "scenario", "placement", "page_type", "page", "widget", "module", "screen",
        "feed", "channel", "campaign", "zone", "carousel", "shelf", "location", "context",
    ),
    c.MODEL: (
        "model", "model_id", "model_name", "model_version", "algorithm", "algo", "algorithm_id",
        "recommender", "ranker", "strategy", "engine", "model_tag",
    ),
    c.ARM: (
        "arm", "variant", "variant_id", "ab_variant", "ab_group", "ab_test_group", "ab_bucket", "bucket",
        "experiment_arm", "experiment_group", "test_group", "treatment", "policy", "cohort", "group",
        "exp", "ab",
    ),
    c.EVENT: (
        "event", "event_type", "event_name", "action", "action_type", "interaction", "interaction_type",
        "behavior", "behaviour", "behavior_type", "type",
    ),
    c.VALUE: ("value", "event_value", "amount", "revenue", "dwell_time", "watch_time", "duration", "rating"),
    c.CATEGORY: ("category", "category_id", "categories", "genre", "genres", "topic", "department", "brand"),
    c.TAGS: ("tags", "tag", "keywords", "labels", "subcategory"),
    c.CREATED_AT: ("created_at", "published_at", "published_time", "release_date", "added_at", "first_seen"),
    c.VECTOR: ("vector", "embedding", "embeddings", "item_vector", "item_embedding", "features_vector"),
}  # fmt: skip


# The first grade with a word of the event's name; what a team's own events mean, only the team knows.
EVENT_GRADES: Final[tuple[tuple[int, str, tuple[str, ...]], ...]] = (
    (0, "disliked, or undone", (
        "dislike", "disliked", "unlike", "hide", "hidden", "skip", "skipped", "remove", "removed", "dismiss",
        "dismissed", "report", "block", "unfollow", "unsubscribe", "return", "returned", "refund", "refunded",
        "cancel", "cancelled", "canceled", "uninstall", "downvote", "negative",
    )),
    (3, "bought", (
        "buy", "bought", "purchase", "purchased", "order", "ordered", "checkout", "pay", "paid", "payment",
        "transaction", "sale", "sold", "subscribe", "subscribed", "book", "booked", "booking", "convert",
        "converted", "conversion", "rent", "rented",
    )),
    (2, "saved for later or liked", (
        "cart", "basket", "bag", "like", "liked", "love", "loved", "fav", "favorite", "favourite", "wishlist",
        "save", "saved", "bookmark", "bookmarked", "share", "shared", "follow", "followed", "heart", "upvote",
        "install", "installed", "download", "downloaded",
    )),
    (1, "a click", (
        "click", "clicked", "clicks", "tap", "tapped", "view", "viewed", "open", "opened", "visit", "visited",
        "play", "played", "watch", "watched", "read", "listen", "listened", "stream", "streamed", "detail",
        "select", "selected",
    )),
)  # fmt: skip
ACTION_WORDS: Final = frozenset(word for _, _, words in EVENT_GRADES for word in words)
SHOWN: Final = frozenset(
    ("impression", "impressions", "exposure", "exposures", "exposed", "show", "shown", "display", "displayed",
     "serve", "served", "render", "rendered")
)  # fmt: skip
NOT_ACTIONS: Final = SHOWN | {"viewport", "scroll", "scrolled"}

# What people call the files and folders of the logs beside the exposures.
LOG_NAMES: Final[dict[str, tuple[str, ...]]] = {
    c.FEEDBACK: (
        "feedback", "clicks", "click", "actions", "interactions", "events", "conversions", "purchases",
    ),
    c.CATALOG: (
        "catalog", "catalogue", "items", "item", "products", "product", "articles", "movies", "songs",
    ),
    c.USERS: ("users", "user", "customers", "members"),
}  # fmt: skip


def plain(name: str) -> str:
    """A name in lower case with its words set apart by `_`.

    >>> plain("XRequestID"), plain("event.user-id"), plain("itemIds")
    ('x_request_id', 'event_user_id', 'item_ids')
    """
    text = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name[:200])
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    return re.sub(r"[^0-9a-z]+", "_", text.lower()).strip("_")


def likeness(name: str, role: str) -> float:
    """How much a column's name sounds like a role: 1 for its own name, 0 for anything else.

    >>> likeness("requestId", "request_id"), likeness("colour", "request_id")
    (1.0, 0.0)
    """
    words = SYNONYMS[role]
    asked = plain(name)
    forms = {asked, asked.removesuffix("s"), asked.replace("_", "")}
    for rank, word in enumerate(words):
        if word in forms or word.replace("_", "") in forms:
            return 1.0 - 0.3 * rank / len(words)
    for rank, word in enumerate(words):
        if len(word) > 3 and any(form.endswith(f"_{word}") for form in forms):
            return 0.6 - 0.2 * rank / len(words)
    close = difflib.get_close_matches(asked, [word for word in words if len(word) > 4], n=1, cutoff=0.86)
    return 0.4 if close else 0.0
