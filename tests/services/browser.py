"""A real Chromium (Debian's) that reports everything a page should not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests.services.kafka import ServiceError

QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
WIDTHS = (1300, 400)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for the whole run."""
    path = shutil.which("chromium")
    if path is None:
        raise ServiceError("chromium: not found; install it (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


class Visit:
    """A tab on one site. `trouble` collects dialogs, errors, broken policies and requests elsewhere."""

    def __init__(self, browser: Browser, base: str, **options: Any) -> None:
        self.base = base
        self.trouble: list[str] = []
        self._context = browser.new_context(viewport={"width": WIDTHS[0], "height": 900}, **options)
        self.page: Page = self._context.new_page()
        self.page.on("dialog", self._dialog)
        self.page.on("console", lambda message: self._console(message.type, message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("popup", lambda popup: self.trouble.append(f"popup: {popup.url}"))

    def _dialog(self, dialog: Any) -> None:
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, kind: str, text: str) -> None:
        # A page that is meant to be missing is told by its status; everything else counts.
        if kind in ("error", "warning") and "status of 40" not in text:
            self.trouble.append(f"{kind}: {text}")

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.base).netloc:
            self.trouble.append(f"request elsewhere: {request.url}")

    def open(self, path: str, status: int = 200) -> Page:
        """Go to a path of the site, and check that the page behaves at every width."""
        answer = self.page.goto(self.base + path)
        assert answer is not None
        assert answer.status == status, answer.text()
        self.check()
        return self.page

    def check(self) -> None:
        """No trouble so far, and no sideways scrolling at any width."""
        assert not self.trouble
        for width in WIDTHS[::-1]:
            self.page.set_viewport_size({"width": width, "height": 900})
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{self.page.url} is {wide} wide at {width}"

    def close(self) -> None:
        self._context.close()
        assert not self.trouble
