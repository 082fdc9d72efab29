"""A file that is compressed once for all visitors."""

import asyncio
import gzip

from starlette.responses import FileResponse

from gptviz.server.serving import CompressedStatic

SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "method": "GET",
    "path": "/static/large.js",
    "headers": [(b"accept-encoding", b"gzip")],
}


def test_who_leaves_in_the_middle_of_a_file_spoils_it_for_nobody(tmp_path):
    """FileResponse ends where its visitor has left: with a part of the file, or with nothing of it."""
    file = tmp_path / "large.js"
    file.write_text("const one = 1;\n" * 100_000)
    app = CompressedStatic(FileResponse(file, media_type="text/javascript"))

    async def leaves():
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def stays():
        await asyncio.Event().wait()

    def answered(receive):
        messages = []

        async def send(message):
            messages.append(message)

        asyncio.run(app(dict(SCOPE), receive, send))
        return messages

    answered(leaves)
    start, *parts = answered(stays)
    assert dict(start["headers"])[b"content-encoding"] == b"gzip"
    body = b"".join(part["body"] for part in parts)
    assert gzip.decompress(body) == file.read_bytes()
