"""A headless Chromium, driven over its debugging pipe with the standard library alone.

    with Browser("/usr/bin/chromium") as b:
        b.open("file:///page.html")
        b.eval("document.title")
        b.move(100, 200); b.key("ArrowRight"); b.screenshot("page.png")
        b.errors      # exceptions, console errors and requests that left the page
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]

# Names, code and number of the keys that tests press; letters and signs say themselves.
KEYS = {
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Enter": 13,
    "Escape": 27,
    "Tab": 9,
    "Home": 36,
    "End": 35,
    "PageUp": 33,
    "PageDown": 34,
}
SHIFT = 8


class Browser:
    def __init__(self, binary, width=1440, height=1000, timeout=60):
        self.timeout, self.number, self.buffer, self.errors, self.events = timeout, 0, b"", [], []
        self.home = tempfile.mkdtemp(prefix="restride-chromium-")
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()

        def pipes():
            # The child's ends under the numbers that Chromium takes them by. Copies first: they may be 3 or 4 already.
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        command = [binary, *FLAGS, f"--user-data-dir={self.home}", f"--window-size={width},{height}", "about:blank"]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        os.close(to_read)
        os.close(to_write)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
        shutil.rmtree(self.home, ignore_errors=True)

    # The protocol: JSON messages that end in a 0 byte.

    def receive(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read], [], [], left)[0]:
                raise TimeoutError(f"the browser did not answer in {self.timeout} s")
            more = os.read(self.read, 1 << 20)
            if not more:
                self.log.seek(0)
                raise RuntimeError("the browser ended: " + self.log.read()[-2000:].decode(errors="replace"))
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data) :]
        until = time.monotonic() + self.timeout
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.event(answer)

    def event(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.errors.append(f"the page asks for {url}")
        elif method == "Page.loadEventFired":
            self.events.append(method)

    # What a user does.

    def open(self, url):
        self.events.clear()
        failed = self.call("Page.navigate", url=url).get("errorText")
        if failed:
            raise RuntimeError(f"{url}: {failed}")
        until = time.monotonic() + self.timeout
        while "Page.loadEventFired" not in self.events:
            self.event(self.receive(until))
        self.settle()

    def settle(self):
        """Waits until what was asked for is drawn."""
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")

    def eval(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def colours(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y):
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"]:
            self.mouse(kind, x, y, button="none" if kind == "mouseMoved" else "left", clickCount=1)
        self.settle()

    def key(self, name, modifiers=0):
        params = {"key": name, "modifiers": modifiers}
        if name in KEYS:
            params |= {"code": name, "windowsVirtualKeyCode": KEYS[name]}
        if len(name) == 1 or name == "Enter":
            params["text"] = "\r" if name == "Enter" else name
        self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        params.pop("text", None)
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)
        self.settle()

    def type(self, words):
        self.call("Input.insertText", text=words)
        self.settle()

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
