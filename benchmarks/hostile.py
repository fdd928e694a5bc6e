"""Hosts that hang, drip, answer slowly or send bombs: `python -m benchmarks.hostile PORT TLS_PORT CERTIFICATE`.

Pages by HTTP on every loopback address. Push services by TLS.
"""

import asyncio
import gzip
import ssl
import sys
import zlib
from collections.abc import Awaitable, Callable

Writer = asyncio.StreamWriter
Rule = Callable[[Writer], Awaitable[None]]

SLOW_SECONDS = 4.3
"""Just below the time that a request may take (web.outbound)."""
NESTED = b"<b><i><u>" * 1_500 + b"<p><b>" * 1_500
ATTRIBUTES = b"<meta " + b" ".join(b"a%d=b" % number for number in range(80_000)) + b">"
DEEP = b"<div>" * 200_000


async def hang(writer: Writer) -> None:
    """Never answer."""
    await asyncio.sleep(60)


async def drip(writer: Writer) -> None:
    """Send a byte of the title now and then."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.2)


async def slow(writer: Writer) -> None:
    """Send a good page late."""
    await asyncio.sleep(SLOW_SECONDS)
    page(writer, b"<title>Slow</title>")


async def taken(writer: Writer) -> None:
    """Take a push message late."""
    await asyncio.sleep(SLOW_SECONDS)
    writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")


async def unpacks(writer: Writer) -> None:
    """Send a page of 1 GiB, packed."""
    packer = zlib.compressobj(9, wbits=31)
    body = packer.compress(b"<title>Bomb</title>") + b"".join(packer.compress(b"x" * 2**20) for _ in range(1024))
    page(writer, body + packer.flush(), b"Content-Encoding: gzip\r\n")


async def nested(writer: Writer) -> None:
    """Send a page that parsers copy again and again."""
    page(writer, b"<title>Nested</title>" + NESTED)


async def attributes(writer: Writer) -> None:
    """Send a page whose first element has 80,000 attributes."""
    page(writer, gzip.compress(ATTRIBUTES + b"<title>Many</title>"), b"Content-Encoding: gzip\r\n")


async def deep(writer: Writer) -> None:
    """Send a page of 200,000 open elements."""
    page(writer, b"<title>Deep</title>" + DEEP)


def page(writer: Writer, body: bytes, headers: bytes = b"") -> None:
    """Write an answer."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%sContent-Length: %d\r\n\r\n" % (headers, len(body)))
    writer.write(body)


RULES: dict[str, Rule] = {rule.__name__: rule for rule in (hang, drip, slow, unpacks, nested, attributes, deep, taken)}
"""The first part of a path, and its answer."""
PAGES = tuple(name for name in RULES if name != "taken")


async def talk(reader: asyncio.StreamReader, writer: Writer) -> None:
    """Answer one request by its path."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        name = head.split()[1].decode("latin-1").split("/")[1]
        await asyncio.wait_for(RULES.get(name, hang)(writer), 60)
        await writer.drain()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return
    finally:
        writer.close()


async def serve(port: int, tls_port: int, certificate: str) -> None:
    """Run until the process is ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    pages = await asyncio.start_server(talk, "0.0.0.0", port)  # noqa: S104 (addresses of loopback)
    services = await asyncio.start_server(talk, "127.0.0.1", tls_port, ssl=context)
    async with pages, services:
        await asyncio.gather(pages.serve_forever(), services.serve_forever())


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
