"""What every driver needs of the contract, whatever its protocol: parameters, events, samples."""
import errno, ipaddress, json, os, re, socket, threading, time

CODES = {errno.ECONNREFUSED: "connect-refused", **dict.fromkeys(
    (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL), "unreachable")}

class Failure(Exception): pass  # code, message

writing = threading.Lock()  # lines and blocks of several threads do not mix

def event(kind, block=b"", **fields):  # a line, and the block of payload that it announces
    b = memoryview((json.dumps({"event": kind, **fields}) + "\n").encode() + block)
    with writing:
        while b: b = b[os.write(1, b):]

def fail(e, late="internal", transfer=None):  # late: what a missed limit is called
    if isinstance(e, Failure): code, message = e.args
    elif isinstance(e, socket.timeout) and e.errno is None: code, message = late, "the limit passed"
    else: code, message = CODES.get(getattr(e, "errno", 0), "reset" if isinstance(e, OSError) else "internal"), repr(e)
    event("error", code=code, message=message, **({"transfer": transfer} if transfer else {}))
    return 1

def parse(text, option):  # option reports whether a protocol takes a value of an option
    def need(holds, what):
        if not holds: raise Failure("bad-parameters", "parameters: " + what)
    whole = lambda v, low, high: type(v) is int and low <= v <= high
    try:
        p = json.loads(text)
        need(whole(p["contract"], 2, 2) and p["role"] in ("query", "server", "client"), "contract or role")
        for name, value in p.setdefault("options", {}).items():
            need(option(name, value), "option %.40r" % name)
        if p["role"] != "query":
            here = p["local" if p["role"] == "server" else "remote"]
            need(ipaddress.ip_address(here["address"]) and "%" not in here["address"] and whole(here["port"], 1, 65535), "address or port")
        if p["role"] == "client":
            local = ipaddress.ip_address(p.get("local", {}).get("address") or here["address"])
            need(local.version == ipaddress.ip_address(here["address"]).version, "addresses of two families")
            need(re.fullmatch("[0-9a-f]{32}", p["transfer"]["id"]) and whole(p["transfer"]["size_bytes"], 0, 1 << 40), "transfer")
            need(whole(p["transfer"].setdefault("duration_ms", 0), 0, 365 * 24 * 3600 * 1000), "transfer.duration_ms")
        return p
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Failure("bad-parameters", "parameters: %.300r" % e)

def until(p, name):  # when a limit that counts from now ends
    ms = p.get("limits", {}).get(name, 0)
    return time.monotonic() + (ms / 1000 if ms > 0 else 1e6)

class Transfer(threading.Thread):  # its clock, bytes and samples
    def __init__(self, p, id, stream):
        super().__init__(daemon=True)
        self.id, self.stream, self.moved, self.last, self.quit = id, stream, 0, 0, threading.Event()
        self.interval, self.began = p.get("sample_interval_ms", 100) / 1000, time.monotonic()
        self.start()
    def run(self):
        count, due = 0, self.began + self.interval
        while not self.quit.wait(max(0, due - time.monotonic())):
            self.sample(time.monotonic() - self.began)
            count += 1
            if count >= 500 and count % 250 == 0: self.interval *= 2
            due += self.interval * (1 + max(0, time.monotonic() - due) // self.interval)
    def sample(self, elapsed):
        self.last = max(self.last, int(elapsed * 1e9))
        sample = {"elapsed_ns": self.last, "sent_bytes": self.moved, **self.stream.metrics()}
        event("sample", transfer=self.id, sample=sample)
        return sample
    def end(self):
        self.quit.set()
        self.join()
    def result(self, elapsed, **more):
        self.end()
        event("result", transfer=self.id, result={"size_bytes": self.moved, "elapsed_ns": int(elapsed * 1e9),
              "final": self.sample(elapsed), **more})
