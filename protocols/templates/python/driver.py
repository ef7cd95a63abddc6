#!/usr/bin/env python3
"""A protocol driver of Linktrial: the transfer from both ends. protocol.py is the protocol that carries it."""
import select, signal, socket, struct, sys, threading, time

sys.dont_write_bytecode = True  # the folder need not be writable
from contract import Failure, Transfer, event, fail, parse, until
from protocol import INFO, connect, listen, option

HEADER, LENGTH, STDIN = struct.Struct(">16sQ"), struct.Struct(">I"), sys.stdin.buffer
PART, MAX_CHUNK, OPEN = 16384, 1 << 20, 1 << 63  # OPEN: a time bounds the payload, which comes in chunks

def client(p):
    def stop(*_): raise Failure("aborted", "told to stop")
    signal.signal(signal.SIGTERM, stop)
    id, size = p["transfer"]["id"], p["transfer"]["size_bytes"]
    duration = p["transfer"]["duration_ms"] / 1000
    event("ready", info=INFO)
    begin, late, t, s = time.monotonic(), "connect-timeout", None, None
    try:
        s = connect(p, until(p, "connect_ms"))
        if s.read(1) != b"R": raise Failure("protocol-violation", "the server's first byte is not R")
        connect_ns = int((time.monotonic() - begin) * 1e9)
        event("connected", transfer=id, connect_ns=connect_ns)
        late = "transfer-timeout"
        s.end = until(p, "transfer_ms")
        s.write(HEADER.pack(bytes.fromhex(id), size | OPEN if duration else size))
        t = Transfer(p, id, s)
        s.end = until(p, "transfer_ms")
        part = 4096 if duration else PART  # a chunk is sent whole, also when the time is up
        if duration: s.keep_little_unsent(4 * part)
        for at in range(0, size, part):
            if duration and at and time.monotonic() >= t.began + duration: break
            b = STDIN.read(min(part, size - at))
            if len(b) < min(part, size - at): raise Failure("internal", "standard input ended after %d bytes" % (at + len(b)))
            s.write(LENGTH.pack(len(b)) + b if duration else b)
            t.moved += len(b)
        if duration: s.write(LENGTH.pack(0))
        answer = s.read(1)
        elapsed = time.monotonic() - t.began
        if answer != b".": raise Failure("protocol-violation", "the answer is %r" % answer)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # nothing is left to abort
        t.result(elapsed, connect_ns=connect_ns)
        s.finish()
        return 0
    except Exception as e:
        if t: t.end()
        return fail(e, late, id)

def exactly(s, count):
    b = b""
    while len(b) < count: b += s.read(count - len(b))
    return b

def pieces(s, size, t):  # how much payload comes next
    if not size & OPEN: return (yield size)
    while count := LENGTH.unpack(exactly(s, LENGTH.size))[0]:
        if count > min(MAX_CHUNK, (size ^ OPEN) - t.moved): raise Failure("protocol-violation", "a chunk of %d bytes" % count)
        yield count

def serve(p, s):
    id, t = None, None
    try:
        s.write(b"R")
        identity, size = HEADER.unpack(exactly(s, HEADER.size))
        id = identity.hex()
        if size & ~OPEN > 1 << 40: raise Failure("protocol-violation", "the header announces %d bytes" % (size & ~OPEN))
        s.end = until(p, "transfer_ms")
        event("connected", transfer=id)
        t = Transfer(p, id, s)
        for count in pieces(s, size, t):
            end = t.moved + count
            while t.moved < end:
                b = s.read(min(PART, end - t.moved))
                event("payload", b, transfer=id, bytes=len(b))
                t.moved += len(b)
        elapsed = time.monotonic() - t.began
        s.write(b".")
        t.result(elapsed)
        s.end = until(p, "transfer_ms")
        s.closed()  # the client closes first
        s.finish()
    except Exception as e:
        if id and not (t and t.quit.is_set()):  # else it was nobody's, or is reported already
            if t: t.end()
            fail(Failure("aborted", "told to stop") if p.get("stopping") else e, "transfer-timeout", id)
        s.close()

def server(p):
    p["stopping"], running = False, {}
    def stop(*_): p["stopping"] = True
    try:
        l = listen(p)
    except OSError as e:
        return fail(Failure("listen-failed", str(e)))
    # A signal just before a blocking call would be noticed only after it; a byte in a pipe is not missed.
    told, tell = socket.socketpair()
    tell.setblocking(False)
    l.setblocking(False)  # a connection may be gone between select and accept
    signal.set_wakeup_fd(tell.fileno())
    signal.signal(signal.SIGTERM, stop)
    event("ready", info=INFO)
    while not p["stopping"]:
        if told in select.select([l, told], [], [])[0]: continue
        try: s = l.accept().open(p, until(p, "connect_ms"))
        except OSError: continue  # told to stop, or a connection that is gone already
        running = {t: c for t, c in running.items() if t.is_alive()}
        thread = threading.Thread(target=serve, args=(p, s))
        running[thread] = s
        thread.start()
    for thread, s in running.items():
        s.interrupt()
        thread.join()
    return 0

def query(p):
    event("ready", info=INFO)
    return 0

try:
    p = parse(STDIN.readline(1 << 20), option)
except Failure as e:
    sys.exit(fail(e))
sys.exit({"query": query, "client": client, "server": server}[p["role"]](p))
