"""What a first visit costs on the wire, counted in a real browser with an empty cache."""

import gzip
import re
import urllib.error
import urllib.request

import pytest

COUNT = """() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
  .map(entry => [new URL(entry.name).pathname, entry.encodedBodySize, entry.decodedBodySize])"""


def test_the_first_visit_is_compressed(open_page):
    page = open_page(text="one two three")
    loaded = page.evaluate(COUNT)
    scripts = [entry for entry in loaded if entry[0].startswith("/static/") and entry[0].endswith(".js")]
    assert scripts
    parts = [entry for entry in loaded if "/component-code/" in entry[0]]
    assert [path for path, _, _ in parts if "/kernel." in path] and len(parts) == len(
        {p for p, _, _ in parts}
    )
    for path, sent, whole in scripts + parts:
        assert sent < whole or whole < 1000, path
    assert sum(sent for _, sent, _ in loaded) < 1_500_000
    assert not any("plotly" in path for path, _, _ in loaded)  # Overview has no chart that needs it


@pytest.mark.parametrize("way", ["gzip", "whole", "part"])
def test_the_same_file_comes_out_however_it_is_asked_for(server, way):
    page = urllib.request.urlopen(server).read().decode()
    script = re.search(r'static/js/[^"]+[.]js', page)[0]
    address = f"{server}/{script}"
    headers = {"gzip": {"Accept-Encoding": "gzip"}, "whole": {}, "part": {"Range": "bytes=10-29"}}[way]
    truth = urllib.request.urlopen(address).read()
    for _ in range(2):  # the second time it is kept
        answer = urllib.request.urlopen(urllib.request.Request(address, headers=headers))
        body = answer.read()
        assert int(answer.headers["Content-Length"]) == len(body)
        assert (answer.headers["Content-Encoding"] == "gzip") == (way == "gzip")
        if way == "gzip":
            assert "Accept-Encoding" in answer.headers["Vary"]
            body = gzip.decompress(body)
        assert body == (truth[10:30] if way == "part" else truth)


def test_a_components_code_is_kept_for_ever_and_another_name_has_none(server, open_page):
    page = open_page(text="one two three")
    (kernel,) = {path for path, _, _ in page.evaluate(COUNT) if "/kernel." in path}
    answer = urllib.request.urlopen(server + kernel)
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Type"].startswith("text/javascript")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{server}/component-code/kernel.js")


def test_a_script_that_is_not_there_is_streamlits_answer(server):
    """Which is its page: whoever invents addresses leaves nothing behind."""
    truth = urllib.request.urlopen(server).read()
    request = urllib.request.Request(f"{server}/static/js/none.js", headers={"Accept-Encoding": "gzip"})
    answer = urllib.request.urlopen(request)
    assert answer.headers["Content-Encoding"] is None and answer.read() == truth
