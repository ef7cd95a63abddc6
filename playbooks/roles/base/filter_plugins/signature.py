"""Verifies signatures of minisign on the controlling machine, before anything is copied.

ansible-core needs the package cryptography itself, so nothing has to be installed for it.
The format is that of https://jedisct1.github.io/minisign/#signature-format; a signed folder
has a file SHA256SUMS ('linktrial install-bundle sign').
"""

import base64
import binascii
import hashlib
import os

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SUMS = "SHA256SUMS"


def _lines(text, count, what):
    lines = text.splitlines()
    if len(lines) < count:
        raise ValueError(f"{what} has {len(lines)} lines, expected {count}")
    return lines


def _decoded(text, size, what):
    try:
        data = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{what} is not base64") from error
    if len(data) != size:
        raise ValueError(f"{what} has {len(data)} bytes, expected {size}")
    return data


def _public_key(text):
    """The identity of a key and the key; text is its line, or its file's."""
    data = _decoded(text.strip().splitlines()[-1] if text.strip() else "", 42, "the public key (linktrial_key)")
    return data[2:10], Ed25519PublicKey.from_public_bytes(data[10:])


def _digest(path, name):
    digest = hashlib.new(name)
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest


def _verify_file(path, key):
    identity, public = _public_key(key)
    try:
        with open(path + ".minisig", encoding="utf-8") as file:
            text = file.read(65536)
    except FileNotFoundError:
        raise ValueError(f"it is not signed: there is no {os.path.basename(path)}.minisig beside it") from None
    except UnicodeDecodeError:
        raise ValueError(f"{os.path.basename(path)}.minisig is no signature") from None
    lines = _lines(text, 4, "the signature")
    data = _decoded(lines[1], 74, "the signature")
    if data[2:10] != identity:
        theirs, ours = data[2:10][::-1].hex().upper(), identity[::-1].hex().upper()
        raise ValueError(f"it is signed by key {theirs}, expected key {ours} (linktrial_key)")
    if data[:2] != b"ED":
        raise ValueError("the signature is of another kind, expected one of a BLAKE2b digest")
    if not lines[2].startswith("trusted comment: "):
        raise ValueError("the signature has no trusted comment")
    try:
        public.verify(data[10:], _digest(path, "blake2b").digest())
        public.verify(_decoded(lines[3], 64, "the comment's signature"), data[10:] + lines[2].removeprefix("trusted comment: ").encode())
    except InvalidSignature:
        raise ValueError("it does not match its signature: it was changed after it was signed") from None


def _verify_folder(path, key):
    _verify_file(os.path.join(path, SUMS), key)
    want = {}
    with open(os.path.join(path, SUMS), encoding="utf-8") as file:
        for line in file:
            digest, _, name = line.rstrip("\n").partition("  ")
            want[name] = digest
    for folder, _, names in os.walk(path):
        for name in names:
            whole = os.path.join(folder, name)
            relative = os.path.relpath(whole, path)
            if relative in (SUMS, SUMS + ".minisig"):
                continue
            if want.pop(relative, None) != _digest(whole, "sha256").hexdigest():
                raise ValueError(f"{relative} is not a file that was signed")
    if want:
        raise ValueError(f"{sorted(want)[0]} is missing")


def unsigned(path, key):
    """Why a file or a folder is not what the key has signed; empty: it is."""
    try:
        if os.path.isdir(path):
            _verify_folder(path, key)
        else:
            _verify_file(path, key)
    except (ValueError, OSError) as error:
        return str(error)
    return ""


class FilterModule:
    """The filters of this file."""

    def filters(self):
        return {"unsigned": unsigned}
