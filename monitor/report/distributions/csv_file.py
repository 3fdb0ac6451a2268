"""The table of a figure as a CSV file that is harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io

from monitor.report.csv_text import harmless
from monitor.report.distributions.figure import Table


def as_csv(table: Table) -> str:
    r"""The table with a header. A text that a spreadsheet would take for a formula gets a quote before it.

    >>> as_csv(Table(("item", "rows"), (("=1+1", -2), ("a, b", None))))
    'item,rows\r\n\'=1+1,-2\r\n"a, b",\r\n'
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([harmless(name) for name in table.columns])
    writer.writerows([harmless(cell) for cell in row] for row in table.rows)
    return text.getvalue()
