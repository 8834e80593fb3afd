"""Chromium without a window, driven by chromedriver (Debian's packages), to look at pages as people
see them."""

from __future__ import annotations

import base64
import json
import pathlib
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from lab.harness import Problem, Programs

# The key of an element in an answer, as the W3C's WebDriver has it.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str | None:
    """What is not installed; None: all is there."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return program
    return None


class Browser:
    """One window. It ends with the Programs that it was started by."""

    def __init__(self, programs: Programs, name: str = "browser") -> None:
        port = programs.reserve_port()
        # Chromium does not always remove its temporary files.
        temporary = programs.work / f"{name}.tmp"
        temporary.mkdir(exist_ok=True)
        driver = programs.start(
            name,
            "env",
            f"TMPDIR={temporary}",
            "chromedriver",
            f"--port={port}",
            f"--log-path={programs.work / name}.driver",
        )
        driver.wait_for_port(port)
        self._base = f"http://127.0.0.1:{port}"
        options = {
            "binary": shutil.which("chromium"),
            "args": [
                "--headless=new",
                "--no-sandbox",  # root has none
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                f"--user-data-dir={programs.work / name}.profile",
            ],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/session/{made['sessionId']}"

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise Problem(f"the browser: {value['error']}: {value['message']}") from error

    def open(self, address: str) -> None:
        self._ask("POST", "/url", {"url": address})

    def close(self) -> None:
        self._ask("DELETE", "")

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function with this body returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def click(self, selector: str) -> None:
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{found[ELEMENT]}/click", {})

    def resize(self, width: int, height: int) -> None:
        """The size of the page; a window cannot be as narrow as a telephone."""
        self._command(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def prefer(self, scheme: str) -> None:
        """ "dark" or "light"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._command("Emulation.setEmulatedMedia", {"features": features})

    def _command(self, name: str, parameters: dict[str, Any]) -> Any:
        return self._ask("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def screenshot(self, file: pathlib.Path) -> None:
        """Takes the whole page, also what is below the window."""
        shot = self._command(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True}
        )
        file.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """What the browser has logged as an error since the last call."""
        log = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] in {"SEVERE", "WARNING"}]

    def wait_until(self, what: Callable[[], bool], text: str, patience: float = 20.0) -> None:
        deadline = time.monotonic() + patience
        while not what():
            if time.monotonic() > deadline:
                raise Problem(f"{text}: not within {patience:.0f} s")
            time.sleep(0.1)
