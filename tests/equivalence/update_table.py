"""The table in docs/equivalence.md. `python -m tests.equivalence.update_table` writes it."""

from __future__ import annotations

from pathlib import Path

from tests.equivalence.update_rules import TRAININGS, promise

DOCUMENT = Path(__file__).parents[2] / "docs" / "equivalence.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def table() -> str:
    """A row per rule, a column per front end."""
    rules = list(dict.fromkeys(rule for rules in TRAININGS.values() for rule in rules))
    lines = ["| rule | " + " | ".join(TRAININGS) + " |", "| --- |" + " --- |" * len(TRAININGS)]
    for rule in rules:
        cells = [str(promise(rule, front)) if rule in rules_of else "" for front, rules_of in TRAININGS.items()]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(before + BEGIN + table() + END + after)


if __name__ == "__main__":
    main()
