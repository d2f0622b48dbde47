"""Replace personal data with equality kept: one value has one stand-in everywhere, its form preserved.

Found are e-mail addresses, phone numbers, payment cards, IBANs, and the values of fields whose names
say that they hold a name, an address or a birth date. A stand-in is made from a keyed hash, so that
tasks mined apart agree, and nobody can look the value up without the key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import string
from collections.abc import Iterable
from typing import Any

import phonenumbers
from stdnum import iban, luhn

FIRST = ("Alex", "Robin", "Sam", "Kim", "Jo", "Chris", "Noa", "Luca", "Mika", "Toni", "Sasha", "Uli")
LAST = ("Brook", "Field", "Stone", "Marsh", "Lane", "Hill", "Wood", "Rivers", "Banks", "Moor", "Glen", "Heath")
EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}")
DIGITS = re.compile(r"(?<![\w.])\d[\d -]{11,22}\d(?![\w.])")
LOCAL_PHONE = re.compile(r"(?<![\w-])(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![\w-])")
OURS = re.compile(r"person\d{1,9}@example\.com")
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b")
NAME_KEYS = frozenset(("first_name", "firstname", "given_name", "last_name", "lastname", "surname", "family_name", "full_name", "fullname", "customer_name", "passenger_name", "contact_name", "recipient_name", "holder"))  # fmt: skip
ADDRESS_KEYS = frozenset(("address", "address1", "address2", "street", "street_address", "postal_code", "postcode", "zip", "zip_code"))  # fmt: skip
PHONE_KEYS = frozenset(("phone", "phone_number", "phonenumber", "mobile", "mobile_number", "telephone"))
DATE_KEYS = frozenset(("dob", "birthdate", "birth_date", "date_of_birth", "birthday"))
NAMES = 997  # numbers beside each made-up name
TRIES = 32
SHORTEST = 2  # a field value shorter than this says nothing about anybody


class Replacer:
    """Replaces values in text and JSON data. `learn` first, so that a name in a result is also
    replaced where the message mentions it."""

    def __init__(self, key: bytes = b"otelmon golden task") -> None:
        self._key = key
        self._known: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, data: Any) -> None:
        """Collect values of fields that hold personal data. Of a name each part is known too, also in
        small letters: people sign with one, and ids are made of them."""
        for name, value in _fields(data):
            if not isinstance(value, str) or len(value.strip()) < SHORTEST:
                continue
            field = name.lower()
            if field in NAME_KEYS:
                parts = [self._named(part, place) for place, part in enumerate(value.split())]
                self._known[value] = " ".join(parts)
            elif field in ADDRESS_KEYS or field in DATE_KEYS or field in PHONE_KEYS:
                self._known[value] = self._same_form(value)
        self._pattern = None

    def text(self, text: str) -> str:
        """The text with every known and every recognised value replaced."""
        text = EMAIL.sub(lambda match: self._email(match[0]), text)
        if self._known:
            if self._pattern is None:
                longest_first = sorted(self._known, key=lambda value: (-len(value), value))
                # Digits and underscores end a word here: ids are made of names.
                self._pattern = re.compile(
                    r"(?<![^\W_])(?:" + "|".join(map(re.escape, longest_first)) + r")(?![^\W\d_])"
                )
            text = self._pattern.sub(lambda match: self._known[match[0]], text)
        text = IBAN.sub(lambda match: self._same_form(match[0], 2) if iban.is_valid(match[0]) else match[0], text)
        text = DIGITS.sub(lambda match: self._same_form(match[0]) if _is_card(match[0]) else match[0], text)
        return LOCAL_PHONE.sub(lambda match: self._same_form(match[0]), self._phones(text))

    def data(self, data: Any) -> Any:
        """JSON data with every text replaced; keys are kept but for e-mail addresses in them."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {EMAIL.sub(lambda m: self._email(m[0]), key): self.data(value) for key, value in data.items()}
        if isinstance(data, list | tuple):
            return [self.data(value) for value in data]
        if isinstance(data, int) and not isinstance(data, bool) and _is_card(str(data)):
            return int("4" + self._same_form(str(data))[1:])
        return data

    # -- stand-ins ---------------------------------------------------------------------------------
    def _named(self, part: str, place: int) -> str:
        stand_in = self._known.get(part) or self._name(part, place)
        if len(part) >= SHORTEST:
            self._known[part] = stand_in
        if len(part) > SHORTEST:
            self._known.setdefault(part.lower(), stand_in.lower())
        return stand_in

    def _number(self, value: str) -> int:
        digest = hmac.new(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        return int.from_bytes(digest[:8], "big")

    def _name(self, part: str, place: int) -> str:
        choices = FIRST if place == 0 else LAST
        number = self._number(part.lower())
        taken = set(self._known.values())
        while True:
            stand_in = f"{choices[number % len(choices)]}{number // len(choices) % NAMES}"
            stand_in = stand_in.lower() if part.islower() else stand_in
            if stand_in not in taken and stand_in != part:
                return stand_in
            number += 1

    def _email(self, value: str) -> str:
        if OURS.fullmatch(value):
            return value
        return f"person{self._number(value.lower()) % 10**9}@example.com"

    def _same_form(self, value: str, keep: int = 0) -> str:
        """Digits stay digits, letters stay letters of their case; everything else stays."""
        stream = _stream(self._key, value)
        for _ in range(TRIES):
            stand_in = value[:keep] + "".join(_like(c, next(stream)) for c in value[keep:])
            if stand_in != value:
                break
        return stand_in

    def _phones(self, text: str) -> str:
        found = [(m.start, m.end) for m in phonenumbers.PhoneNumberMatcher(text, None)]
        for start, end in reversed(found):
            text = text[:start] + self._same_form(text[start:end], 3) + text[end:]
        return text


def _stream(key: bytes, value: str) -> Any:
    block = hmac.new(key, value.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    while True:
        yield from block
        block = hashlib.sha256(key + block).digest()


def _like(c: str, byte: int) -> str:
    if c.isdecimal():
        return string.digits[byte % 10]
    if c.isalpha():
        letter = string.ascii_lowercase[byte % 26]
        return letter.upper() if c.isupper() else letter
    return c


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return 13 <= len(digits) <= 19 and luhn.is_valid(digits)


def _fields(data: Any) -> Iterable[tuple[str, Any]]:
    """Every (key, value) of nested JSON data."""
    waiting = [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from item.items()
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)
