# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the queries of docs/queries.md with DuckDB (PyPI: duckdb) and compares with what the document shows.

usage: queries.py DOCUMENT FOLDER [--write]
The queries read 'decisions.parquet' and 'corpus/*.parquet' in FOLDER.
"""

import os
import re
import sys

import duckdb

document, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
with open(document, encoding="utf-8") as file:
    text = file.read()
os.chdir(folder)


def table(relation):
    names = relation.columns
    rows = [["" if cell is None else str(cell) for cell in row] for row in relation.fetchall()]
    numeric = [bool(rows) and all(re.fullmatch(r"-?[\d.]*", row[at]) for row in rows) for at in range(len(names))]
    widths = [max(len(row[at]) for row in [names, *rows]) for at in range(len(names))]

    def line(row):
        cells = (cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, numeric))
        return "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in [names, *rows]) + "\n"


BLOCK = re.compile(r"```sql\n(.*?)```\n\n```text\n(.*?)```", re.S)
count = 0


def run(match):
    global count
    count += 1
    result = table(duckdb.sql(match.group(1)))
    if "--write" not in sys.argv:
        assert result == match.group(2), f"{match.group(1)}\ngives\n{result}\nthe document has\n{match.group(2)}"
    return f"```sql\n{match.group(1)}```\n\n```text\n{result}```"


written = BLOCK.sub(run, text)
assert count >= 5, count
if "--write" in sys.argv:
    with open(document, "w", encoding="utf-8") as file:
        file.write(written)
print(f"queries: {count} of {os.path.basename(document)} run by DuckDB {duckdb.__version__}")
