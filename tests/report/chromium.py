"""Chromium driven by the DevTools protocol over a pair of pipes: JSON messages, each ended by a zero byte."""

import base64
import fcntl
import json
import os
import select
import subprocess
import time


class Chromium:
    """A browser; `open` gives a page."""

    def __init__(self, program, folder):
        self.folder = folder
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()
        # The browser reads from descriptor 3 and writes to 4; move ours out of the way first.
        high_read = fcntl.fcntl(to_read, fcntl.F_DUPFD_CLOEXEC, 20)
        high_write = fcntl.fcntl(from_write, fcntl.F_DUPFD_CLOEXEC, 20)

        def place():
            os.dup2(high_read, 3)
            os.dup2(high_write, 4)

        self.process = subprocess.Popen(
            [
                program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
                f"--user-data-dir={folder / 'profile'}", "about:blank",
            ],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (to_read, from_write, high_read, high_write):
            os.close(end)
        self.number, self.buffer, self.events = 0, b"", []

    def call(self, method, session=None, /, **parameters):
        """Send a command and wait for its answer; events in between are stored."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(60)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _receive(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            assert left > 0, "the browser does not answer"
            if select.select([self.from_read], [], [], left)[0]:
                part = os.read(self.from_read, 1 << 20)
                assert part, "the browser has gone"
                self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path, *, width=1200, height=800, dark=False, phone=False, ratio=1):
        """Load a file in a new page of this size."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=ratio,
            mobile=phone,
        )
        page.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.folder), eventsEnabled=True
        )
        page.call("Page.navigate", url=path.resolve().as_uri())
        page.wait("document.readyState === 'complete'")
        page.frame()
        return page

    def close(self):
        os.write(self.to_write, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        self.process.wait(20)
        os.close(self.to_write)
        os.close(self.from_read)


class Page:
    """One page: evaluate expressions, point, type."""

    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText")

    def wait(self, expression, seconds=20):
        deadline = time.monotonic() + seconds
        while not self.value(expression):
            assert time.monotonic() < deadline, f"never came true: {expression}"
            time.sleep(0.02)

    def frame(self):
        """Wait until pending drawing is done."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        button = {"button": "left", "buttons": 1, "clickCount": 1} if kind != "mouseMoved" else {}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **{**button, **more})

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def click_on(self, selector):
        box = self.value(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.click(*box)

    def drag(self, corners, **more):
        self.mouse("mouseMoved", *corners[0], **more)
        self.mouse("mousePressed", *corners[0], **more)
        for x, y in corners[1:]:
            self.mouse("mouseMoved", x, y, button="left", buttons=1, **more)
        self.mouse("mouseReleased", *corners[-1], **more)

    def touch(self, kind, *points):
        spots = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=spots)

    def key(self, name, text=None, **more):
        down = {"type": "keyDown" if text else "rawKeyDown", "key": name, **({"text": text} if text else {})}
        self.call("Input.dispatchKeyEvent", **down, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, **more)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def complaints(self):
        """Console errors, uncaught errors and violations of the page's policy, so far."""
        self.value("1")
        of_page = [event for event in self.browser.events if event.get("sessionId") == self.session]
        return [
            event["params"]
            for event in of_page
            if event["method"] == "Runtime.exceptionThrown"
            or (
                event["method"] == "Runtime.consoleAPICalled"
                and event["params"]["type"] in ("error", "warning")
            )
            or (
                event["method"] == "Log.entryAdded"
                and event["params"]["entry"]["level"] in ("error", "warning")
            )
        ]

    def requests(self):
        """URLs that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event["method"] == "Network.requestWillBeSent" and event.get("sessionId") == self.session
        ]

    def cpu_seconds(self):
        """CPU time of the page's main thread since `Performance.enable`."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
