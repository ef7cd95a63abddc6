"""TCP, from the standard library alone. THE FILE TO REPLACE: for another protocol, write these names anew.

What driver.py and contract.py need of a protocol:
  INFO            what carries the data (the field info of the event ready)
  option(n, v)    whether v is a value of the option n, as driver.yaml declares it
  listen(p)       a listener with accept() and fileno(); raises OSError
  connect(p, end) a Stream to the server, by time.monotonic() end; raises Failure or OSError
  Stream          one connection; a wait beyond .end raises socket.timeout
"""
import errno, socket, struct, sys, time
from contract import Failure

INFO = {"implementation": "linux-kernel", "detail": {"python": sys.version.split()[0]}}

def option(name, value): return name == "nodelay" and type(value) is bool

def family(address): return socket.AF_INET6 if ":" in address else socket.AF_INET

class Stream(socket.socket):
    end = 0  # of all waits; set anew with every limit
    def open(self, p, end):
        # Whatever ends this process, nothing goes on sending: with a linger of 0 a close resets.
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, p["options"].get("nodelay", True))
        self.end = end
        return self
    def wait(self, action, argument):
        left = self.end - time.monotonic()
        if left <= 0: raise socket.timeout()
        self.settimeout(left)
        return action(argument)
    def read(self, most):
        b = self.wait(self.recv, most)
        if not b: raise Failure("reset", "the other end closed the connection")
        return b
    def write(self, b): self.wait(self.sendall, b)
    def keep_little_unsent(self, size):  # in a transfer that a time bounds: what the kernel has not sent by then, it would send
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, size)
    def metrics(self): return {}  # of a sample: what the protocol knows, such as "retransmits" and "srtt_us"
    def closed(self):  # waits until the other end has closed
        self.wait(self.recv, 1)
    def interrupt(self):  # from another thread: ends every wait
        try: self.shutdown(socket.SHUT_RDWR)
        except OSError: pass  # closed already
    def finish(self):  # in order: what was written still arrives
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
        self.close()

class Listener(socket.socket):
    def accept(self):
        s, _ = super().accept()
        return Stream(fileno=s.detach())

def listen(p):
    at = p["local"]["address"]
    l = Listener(family(at), socket.SOCK_STREAM)
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # also while connections of an earlier server are ending
    l.bind((at, p["local"]["port"]))
    l.listen(128)
    return l

def connect(p, end):
    to, local = (p["remote"]["address"], p["remote"]["port"]), p.get("local", {}).get("address")
    while True:
        s = Stream(family(to[0]), socket.SOCK_STREAM).open(p, end)
        try:
            if local: s.bind((local, 0))
            s.wait(s.connect, to)
            return s
        except OSError as e:
            s.close()
            if e.errno != errno.ETIMEDOUT: raise
            time.sleep(0.1)  # the kernel's own attempts are over before the limit
