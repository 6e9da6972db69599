"""Turns the first million flights into lines of key, tab, value.

The key is the route, so that a few thousand keys of very different weight spread over the
partitions; the value starts with the line's number, which makes every record unique.
"""

import sys

import pyarrow.parquet as parquet

ROWS = 1_000_000


def main(source: str, target: str) -> None:
    table = parquet.read_table(source).slice(0, ROWS)
    columns = [table.column(name).to_pylist() for name in ("date", "delay", "distance", "origin", "destination")]
    with open(target, "w", encoding="ascii", newline="\n") as out:
        for number, (date, delay, distance, origin, destination) in enumerate(zip(*columns)):
            out.write(
                f"{origin}-{destination}\t{number},{date:%Y-%m-%dT%H:%M},{delay},{distance},{origin},{destination}\n"
            )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
