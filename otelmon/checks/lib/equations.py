"""Calculations that a message writes out: `3 x $12 + $5 = $41`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, DivisionByZero, InvalidOperation, localcontext
from itertools import islice, product

import msgspec

from otelmon.checks.lib.values import fold, number_forms

MAX_TEXT = 24_000  # characters of a message that are read
MAX_EQUATIONS = 60
MAX_READINGS = 32  # ways to read the numbers of one calculation
_SIGN = r"(?:[$€£]|usd|eur|gbp)?\s?"
_NUMBER = rf"{_SIGN}\d[\d.,'\u00a0]*\d|{_SIGN}\d"
_OPERAND = rf"(?:{_NUMBER})(?:\s?(?:€|%|usd|eur|gbp|dollars|euros))?(?:\s*/\s*[a-z]+|\s+(?:[a-z]+\s?){{1,3}}?)?"
_OPERATOR = r"\s*(?:[+*/×÷x]|[-−–](?=\s))\s*"
_EQUATION = re.compile(
    rf"(?<![\w.,$€£+*/×÷=(%-])((?:{_OPERAND})(?:{_OPERATOR}(?:{_OPERAND}))+)\s*=\s*({_NUMBER})(?![\w%/*×÷+]|[.,]\d|\s*[-+*/×÷]\s*[$€£]?\d)"
)
_PIECE = re.compile(rf"({_NUMBER})|([+*/×÷]|(?<=\s)x(?=\s)|(?<=\d)x(?=[\s$€£\d])|[-−–](?=\s))")
_SAME = {"×": "*", "x": "*", "÷": "/", "−": "-", "–": "-"}


class Equation(msgspec.Struct, frozen=True):
    """A calculation as written (folded), what it says the result is, and the result it has."""

    written: str
    stated: str
    result: str


def wrong_equations(text: str) -> list[Equation]:
    """The calculations of a text whose result is not what it says, in order. Rounded results are right."""
    return list(_wrong(fold(text[:MAX_TEXT]).replace("**", "")))


def _wrong(folded: str) -> Iterator[Equation]:
    for _, match in zip(range(MAX_EQUATIONS), _EQUATION.finditer(folded), strict=False):
        stated = number_forms(_digits(match.group(2)))
        results = [value for pieces in _readings(match.group(1)) if (value := _value(pieces)) is not None]
        if results and stated and not any(_equal(result, Decimal(form)) for result in results for form in stated):
            result = max(results, key=abs)
            yield Equation(" ".join(match.group().split()), match.group(2).strip(), format(result.normalize(), "f"))


def _digits(number: str) -> str:
    return re.sub(r"[^\d.,'\u00a0]", "", number)


def _readings(expression: str) -> list[list[str]]:
    """Numbers and operators in turn, for every way to read the numbers (`1,200`); empty when the expression
    is anything else."""
    if "%" in expression:
        return []
    pieces: list[list[str]] = []
    for match in _PIECE.finditer(expression):
        if match.group(1):
            pieces.append(sorted(number_forms(_digits(match.group(1)))))
        else:
            pieces.append([_SAME.get(match.group(2), match.group(2))])
    turns = all((piece[0] in "+-*/") == bool(i % 2) for i, piece in enumerate(pieces) if piece)
    if not (turns and all(pieces) and len(pieces) % 2 and len(pieces) > 2):
        return []
    return [list(reading) for reading in islice(product(*pieces), MAX_READINGS)]


def _value(pieces: list[str]) -> Decimal | None:
    """Products and quotients first, then sums and differences."""
    terms = [Decimal(pieces[0])]
    with localcontext() as context:
        context.prec = 30
        try:
            for operator, number in zip(pieces[1::2], map(Decimal, pieces[2::2]), strict=True):
                if operator == "*":
                    terms[-1] *= number
                elif operator == "/":
                    terms[-1] /= number
                else:
                    terms.append(number if operator == "+" else -number)
        except (DivisionByZero, InvalidOperation):
            return None
        return sum(terms, Decimal(0))


def _equal(result: Decimal, stated: Decimal) -> bool:
    """Equal as far as the stated number is written out."""
    step = Decimal(1).scaleb(min(int(stated.as_tuple().exponent), 0))
    return abs(abs(result) - stated) < step
