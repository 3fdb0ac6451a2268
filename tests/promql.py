"""Hold PromQL against the table of exported families."""

from __future__ import annotations

import promql_parser as pq

from monitor.metrics.exported import ExportedFamily

SCRAPE_LABELS = {"job", "instance"}
# Of Prometheus itself. An alert has labels of its own; those that it is asked for here.
FOREIGN = {
    "up": SCRAPE_LABELS,
    "ALERTS": {
        "alertname",
        "alertstate",
        "severity",
        "instance",
        "recommender",
        "rule",
        "metric",
        "cause",
        "pair",
        "model",
    },
}


def mistakes(expression: str, families: dict[str, ExportedFamily]) -> list[str]:
    """What in the expression is not exported as declared: families, and labels wherever they are named."""
    found: list[str] = []
    _check(pq.parse(expression), families, found)
    return found


def families_in(expression: str) -> set[str]:
    """The names of the families that the expression reads."""
    names: set[str] = set()
    pq.walk(pq.parse(expression), lambda node: _note(node, names))
    return names


def _note(node: pq.Expr, names: set[str]) -> bool:
    if isinstance(node, pq.VectorSelector):
        names.add(node.name or "")
    if isinstance(node, pq.MatrixSelector):
        names.add(node.vector_selector.name or "")
    return True


def _selector(node: pq.VectorSelector, families: dict[str, ExportedFamily], found: list[str]) -> set[str]:
    name = node.name or ""
    if name in FOREIGN:
        known = FOREIGN[name]
    elif name in families:
        known = {*families[name].labels, *SCRAPE_LABELS}
    else:
        found.append(f"{name!r} is no exported family")
        return set()
    named = {matcher.name for matcher in node.matchers.matchers}
    found += [f"{name} has no label {label}" for label in sorted(named - known)]
    return set(known)


def _check(node: pq.Expr, families: dict[str, ExportedFamily], found: list[str]) -> set[str]:
    """Check a node and all below it; the labels that its result can carry."""
    match node:
        case pq.VectorSelector():
            return _selector(node, families, found)
        case pq.MatrixSelector():
            return _selector(node.vector_selector, families, found)
        case pq.AggregateExpr():
            below = _check(node.expr, families, found)
            if node.modifier is None:
                return set()
            named = set(node.modifier.labels)
            found.extend(f"{label} is no label of {node.expr}" for label in sorted(named - below))
            by = node.modifier.type == pq.AggModifierType.By
            return named if by else below - named
        case pq.BinaryExpr():
            left, right = (_check(side, families, found) for side in (node.lhs, node.rhs))
            matching = node.modifier.matching if node.modifier else None
            if matching is not None:
                for side, labels in ((node.lhs, left), (node.rhs, right)):
                    missing = sorted(set(matching.labels) - labels)
                    if not isinstance(side, pq.NumberLiteral):
                        found.extend(f"{label} is no label of {side}" for label in missing)
            return left | right
        case pq.Call():
            arguments = [_check(argument, families, found) for argument in node.args]
            return set().union(*arguments)
        case pq.ParenExpr() | pq.UnaryExpr() | pq.SubqueryExpr():
            return _check(node.expr, families, found)
        case _:
            return set()
