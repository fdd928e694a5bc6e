"""One tab in each engine: Chromium by Playwright, Debian's Firefox by Marionette, WebKitGTK by WebDriver.

Playwright drives other engines only in builds of its own.
"""

import base64
import contextlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page

PATIENCE = 30
SIZE = (1280, 1000)
# Debian has a folder for each architecture.
MINI_BROWSER = next(iter(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser")), None)
BOX = "const box = document.querySelector(arguments[0]).getBoundingClientRect(); "


class Tab:
    """What a reader does in a tab. Elements are found by CSS, scripts are bodies of functions."""

    name = ""
    site = ""

    def open(self, address: str) -> None:
        raise NotImplementedError

    def js(self, script: str, *arguments: Any) -> Any:
        raise NotImplementedError

    def click(self, found: str) -> None:
        raise NotImplementedError

    def type(self, found: str, text: str) -> None:
        raise NotImplementedError

    def choose(self, found: str, path: Path) -> None:
        """Choose a file in a field."""
        raise NotImplementedError

    def add_cookie(self, name: str, value: str) -> None:
        raise NotImplementedError

    def picture(self) -> Image.Image:
        """What is seen of the page."""
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def goto(self, path: str) -> None:
        self.open(self.site + path)

    def until(self, script: str, *arguments: Any) -> Any:
        """Wait until a script returns something true."""
        until = time.monotonic() + PATIENCE
        while not (found := self.js(script, *arguments)):
            assert time.monotonic() < until, f"{self.name}: {script} does not come true"
            time.sleep(0.05)
        return found

    def shows(self, found: str) -> None:
        self.until("return Boolean(document.querySelector(arguments[0])?.getClientRects().length)", found)

    def box(self, found: str) -> tuple[float, float, float, float]:
        """Its left, top, width and height."""
        x, y, width, height = self.js(f"{BOX} return [box.x, box.y, box.width, box.height]", found)
        return x, y, width, height

    def colour(self, found: str, right: float = 0.5, down: float = 0.5) -> tuple[int, int, int]:
        """The colour that is seen at a place of an element."""
        x, y, width, height = self.box(found)
        image = self.picture().convert("RGB")
        scale = image.width / self.js("return innerWidth")
        point = (int((x + width * right) * scale), int((y + height * down) * scale))
        red, green, blue = image.getpixel(point)  # type: ignore[misc]
        return red, green, blue


class PlaywrightTab(Tab):
    name = "chromium"

    def __init__(self, page: Page) -> None:
        self._page = page

    def open(self, address: str) -> None:
        self._page.goto(address)

    def js(self, script: str, *arguments: Any) -> Any:
        for _ in range(20):
            try:
                return self._page.evaluate(f"all => (function () {{ {script} }})(...all)", list(arguments))
            except Exception as error:
                if "navigation" not in str(error):
                    raise
        raise AssertionError(script)

    def click(self, found: str) -> None:
        self._page.locator(found).first.click()

    def type(self, found: str, text: str) -> None:
        self._page.locator(found).first.press_sequentially(text)

    def choose(self, found: str, path: Path) -> None:
        self._page.locator(found).set_input_files(path)

    def add_cookie(self, name: str, value: str) -> None:
        self._page.context.add_cookies([{"name": name, "value": value, "url": self.site}])

    def picture(self) -> Image.Image:
        return Image.open(io.BytesIO(self._page.screenshot()))

    def end(self) -> None:
        self._page.context.close()


class WebDriverTab(Tab):
    """Firefox and WebKit take the same commands, by different ways."""

    def ask(self, command: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a command: Marionette's name, and WebDriver's method and path."""
        raise NotImplementedError

    def _begin(self) -> None:
        self.ask("SetTimeouts", "POST", "/timeouts", {"script": 20_000, "pageLoad": 30_000, "implicit": 0})
        self.ask("SetWindowRect", "POST", "/window/rect", {"width": SIZE[0], "height": SIZE[1]})

    def open(self, address: str) -> None:
        self.ask("Navigate", "POST", "/url", {"url": address})

    def js(self, script: str, *arguments: Any) -> Any:
        return self.ask("ExecuteScript", "POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def _find(self, found: str) -> str:
        self.until("return document.querySelector(arguments[0]) !== null", found)
        element = self.ask("FindElement", "POST", "/element", {"using": "css selector", "value": found})
        return str(next(iter(element.values())))

    def click(self, found: str) -> None:
        self.shows(found)
        element = self._find(found)
        self.ask("ElementClick", "POST", f"/element/{element}/click", {"id": element})

    def type(self, found: str, text: str) -> None:
        element = self._find(found)
        self.ask("ElementSendKeys", "POST", f"/element/{element}/value", {"id": element, "text": text})

    def choose(self, found: str, path: Path) -> None:
        self._find(found)
        # WebDriver types only into what is seen.
        style = "position: static; display: block; width: 200px; height: 30px; opacity: 1; clip-path: none"
        self.js("document.querySelector(arguments[0]).style.cssText = arguments[1]", found, style)
        self.type(found, str(path))

    def add_cookie(self, name: str, value: str) -> None:
        self.ask("AddCookie", "POST", "/cookie", {"cookie": {"name": name, "value": value}})

    def picture(self) -> Image.Image:
        data = self.ask("TakeScreenshot", "GET", "/screenshot")
        return Image.open(io.BytesIO(base64.b64decode(data)))


class FirefoxTab(WebDriverTab):
    name = "firefox"

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp()
        port = free_port()
        settings = {
            "marionette.port": port,
            "browser.aboutwelcome.enabled": False,
            "datareporting.policy.dataSubmissionEnabled": False,
            "intl.accept_languages": "en",
        }
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in settings.items()]
        Path(self._folder, "user.js").write_text("\n".join(lines))
        self._process = started("firefox-esr", "--marionette", "--headless", "--no-remote", "--profile", self._folder)
        self._socket = connected(port)
        self._answers = self._socket.makefile("rb")
        self._number = 0
        self._read()  # its greeting
        self.ask("NewSession", "POST", "/session", {"capabilities": {"alwaysMatch": {}}})
        self._begin()

    def _read(self) -> Any:
        size = b""
        while (byte := self._answers.read(1)) != b":":
            assert byte, "Firefox has ended"
            size += byte
        return json.loads(self._answers.read(int(size)))

    def ask(self, command: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        self._number += 1
        data = json.dumps([0, self._number, f"WebDriver:{command}", body or {}]).encode()
        self._socket.sendall(b"%d:%s" % (len(data), data))
        _, _, error, answer = self._read()
        assert not error, error
        return answer.get("value", answer) if isinstance(answer, dict) else answer

    def end(self) -> None:
        self._answers.close()
        self._socket.close()
        stop(self._process)
        shutil.rmtree(self._folder, ignore_errors=True)


class WebKitTab(WebDriverTab):
    name = "webkit"

    def __init__(self) -> None:
        port = free_port()
        screen = ["-a", "-s", "-screen 0 1400x1100x24"]
        self._process = started("xvfb-run", *screen, "WebKitWebDriver", "-p", str(port))
        self._address = f"http://127.0.0.1:{port}"
        connected(port).close()
        options = {"binary": str(MINI_BROWSER), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        answer = self.ask("NewSession", "POST", "/session", {"capabilities": wanted})
        self._address += f"/session/{answer['sessionId']}"
        self._begin()

    def ask(self, command: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self._address + path, method=method, data=data)  # noqa: S310  # its own
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  # its own
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(error.read().decode()) from error

    def end(self) -> None:
        try:
            self.ask("DeleteSession", "DELETE", "")  # ends the browser
        finally:
            stop(self._process)


def started(*command: str) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def stop(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(30)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def connected(port: int) -> socket.socket:
    until = time.monotonic() + 2 * PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except OSError:
            assert time.monotonic() < until, "the browser does not start"
            time.sleep(0.1)


def missing(name: str) -> str:
    """Debian's packages that an engine needs and that are not here."""
    if name == "firefox":
        return "" if shutil.which("firefox-esr") else "firefox-esr"
    if name == "webkit":
        is_here = MINI_BROWSER and shutil.which("WebKitWebDriver") and shutil.which("xvfb-run")
        return "" if is_here else "webkit2gtk-driver, xvfb and xauth"
    return ""


class Line:
    """The way to a server, which can be cut."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._open: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://localhost:{self._door.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        hang_up(one)
        hang_up(other)

    def cut(self) -> None:
        hang_up(self._door)
        for each in self._open:
            hang_up(each)


def hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
