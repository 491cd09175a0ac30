"""One explorer for all tests of a worker, and a small client for its API."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
DRIVER = shutil.which("chromedriver")


@dataclass(frozen=True)
class Client:
    """Requests to an explorer."""

    url: str

    def send(
        self,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        method: str | None = None,
    ) -> tuple[int, Any]:
        """Status and body; a body of bytes is sent as it is."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path,
            data,
            {"Content-Type": "application/json", **(headers or {})},
            method=method or ("GET" if data is None else "POST"),
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def ok(self, path: str, body: Any = None) -> Any:
        """The body of an answer that must succeed."""
        status, found = self.send(path, body)
        assert status in (200, 202), found
        return found


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("starlette", reason="the extra explore is not installed")
    pytest.importorskip("uvicorn", reason="the extra explore is not installed")
    store: Path = tmp_path_factory.mktemp("explorer") / "store.sqlite"
    with gs.explore(browser=False, store=store) as running:
        yield running


@pytest.fixture(scope="session")
def client(explorer: Any) -> Client:
    return Client(explorer.url)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("selenium", reason="selenium is not installed")
    if BROWSER is None or DRIVER is None:
        pytest.skip("no browser: install chromium and chromedriver (Debian: chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(BROWSER)
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing but this machine
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(DRIVER))
    running.set_script_timeout(90)
    yield running
    running.quit()
