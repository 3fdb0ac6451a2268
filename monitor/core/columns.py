"""The one place where the logs and their columns are named, with the type that each column is read as."""

from __future__ import annotations

import re
from typing import Final, Literal

EXPOSURES: Final = "exposures"
FEEDBACK: Final = "feedback"
CATALOG: Final = "catalog"
USERS: Final = "users"
SAMPLES: Final = "samples"
REQUESTS: Final = "requests"
"""A log of requests without their answers; only `replay` reads it."""
NEIGHBOUR: Final = "neighbour"
"""The log of another system of the platform. A recommender has any number of them, so it is not in LOGS."""
SURVEY: Final = "survey"
LOGS: Final = (EXPOSURES, FEEDBACK, CATALOG, USERS, SAMPLES, SURVEY)

REQUEST_ID: Final = "request_id"
USER_ID: Final = "user_id"
TS: Final = "ts"
ITEM_ID: Final = "item_id"
POSITION: Final = "position"
SCORE: Final = "score"
SCENE: Final = "scene"
MODEL: Final = "model"
ARM: Final = "arm"
PROPENSITY: Final = "propensity"
STATUS: Final = "status"
LATENCY: Final = "latency"
EVER_SHOWN: Final = "ever_shown"
EVENT: Final = "event"
VALUE: Final = "value"
CATEGORY: Final = "category"
TAGS: Final = "tags"
CREATED_AT: Final = "created_at"
VECTOR: Final = "vector"
SPLIT: Final = "split"
LABEL: Final = "label"
QUESTION: Final = "question"
ANSWER: Final = "answer"

TRAIN: Final = "train"
TEST: Final = "test"
ONLINE: Final = "online"
OFFLINE: Final = "offline"
SPLITS: Final = (TRAIN, TEST, ONLINE, OFFLINE)
"""The kinds of samples: rows that the model was fitted on, tested on, or scored in service. An `offline` row
repeats an online row with the features of the offline pipeline; the two are only compared."""

ColumnType = Literal["id", "time", "integer", "number", "text", "texts", "numbers", "split"]

TYPES: Final[dict[str, dict[str, ColumnType]]] = {
    EXPOSURES: {
        REQUEST_ID: "id",
        USER_ID: "id",
        TS: "time",
        ITEM_ID: "id",
        POSITION: "integer",
        SCORE: "number",
        SCENE: "text",
        MODEL: "text",
        ARM: "text",
        PROPENSITY: "number",
    },
    FEEDBACK: {
        USER_ID: "id",
        ITEM_ID: "id",
        TS: "time",
        EVENT: "text",
        REQUEST_ID: "id",
        VALUE: "number",
    },
    CATALOG: {ITEM_ID: "id", CATEGORY: "texts", TAGS: "texts", CREATED_AT: "time", VECTOR: "numbers"},
    USERS: {USER_ID: "id"},
    REQUESTS: {REQUEST_ID: "id", USER_ID: "id", TS: "time", SCENE: "text", MODEL: "text", ARM: "text"},
    SAMPLES: {
        SPLIT: "split",
        SCORE: "number",
        LABEL: "number",
        USER_ID: "id",
        REQUEST_ID: "id",
        ITEM_ID: "id",
        TS: "time",
        MODEL: "text",
        SCENE: "text",
    },
    NEIGHBOUR: {TS: "time", USER_ID: "id", EVENT: "text", VALUE: "number"},
    SURVEY: {
        USER_ID: "id",
        TS: "time",
        QUESTION: "text",
        ANSWER: "text",  # kept as it was written, so that each kind of fault can be counted
        REQUEST_ID: "id",
        ARM: "text",
    },
}

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    EXPOSURES: (REQUEST_ID, USER_ID, TS, ITEM_ID),
    FEEDBACK: (USER_ID, ITEM_ID, TS, EVENT),
    CATALOG: (ITEM_ID,),
    USERS: (USER_ID,),
    REQUESTS: (REQUEST_ID, USER_ID, TS),
    SAMPLES: (SPLIT, SCORE, LABEL),
    NEIGHBOUR: (TS,),
    SURVEY: (USER_ID, TS, QUESTION, ANSWER),
}

# Without these a row belongs to no request, no item, no user or no time, and cannot be used at all.
INDISPENSABLE: Final[dict[str, tuple[str, ...]]] = {
    EXPOSURES: (REQUEST_ID, TS),
    FEEDBACK: (TS,),
    CATALOG: (ITEM_ID,),
    USERS: (USER_ID,),
    REQUESTS: (REQUEST_ID, TS),
    SAMPLES: (SPLIT,),
    NEIGHBOUR: (TS,),
    SURVEY: (TS,),
}

RESERVED: Final = "__monitor_"
"""Columns that the monitor itself adds to tables begin with this; no column of a log may."""

ROW_NUMBERS: Final = re.compile(r"_{0,2}index_level_\d+_{0,2}|Unnamed: \d+|")
"""The names that pandas gives to the row numbers of a table; in a CSV file they have none."""

OK: Final = "ok"
INTERRUPTED: Final = "interrupted"
FAILURES: Final = ("error", "timeout", "refused", "garbage", "too_large", "wrong_user", INTERRUPTED)
"""The values of `status` that say that a request got no answer. Such a row without an item is a failed
request, not an empty list."""
