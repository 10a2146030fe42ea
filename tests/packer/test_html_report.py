"""The page of a library, in a real browser: by mouse and keyboard, in the dark, under attack."""

from __future__ import annotations

import json
import os
import re
import runpy
import socket
import stat
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packer
import runtime
from packer.cli import main
from packer.elf.image import Image
from packer.files.text import visible
from packer.inspect import inspect_library
from packer.inspect.page import write_report
from packer.inspect.page.content import describe
from packer.inspect.page.layout import lay_out
from packer.inspect.page.region import Region, fill, group, nest
from runtime.error import ExportError, LibraryLoadError

from .browser import CHROMIUM, opened, running_browser

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

HOSTILE_DOC = "</script><script>document.title = 'owned'</script>\n\u202etxet <!-- <b>bold</b>"
HOSTILE_NAME = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def kernels(type_key: str, name: str, source: str = "// text") -> runtime.DeviceModule:
    """A device module with one kernel."""
    kernel = runtime.FunctionInfo(name, ["handle"], ["blockIdx.x"])
    return runtime.DeviceModule(type_key, source, "ptx", [kernel])


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """Host code over a graph with 10,000 tensors; both import a kernel with a hostile name."""
    root = packer.CSourceModule(
        "long add(long a, long b) { return a + b; }\nlong sub(long a, long b) { return a - b; }\n",
        functions={
            "add": packer.FunctionDeclaration("long(long a, long b)", doc=HOSTILE_DOC),
            "sub": "long(long a, long b)",
        },
    )
    arrays = {f"layer.{i}": np.zeros(1 + i % 50, "f4" if i % 3 else "i1") for i in range(10_000)}
    params = {name: runtime.tensor(array) for name, array in arrays.items()}
    graph = runtime.GraphExecutorFactory("{}", params, "default")
    cuda = kernels("cuda", HOSTILE_NAME)
    root.import_module(graph)
    root.import_module(cuda)
    graph.import_module(cuda)
    return packer.export_library(root, tmp_path_factory.mktemp("report") / "model.so", entry="add")


@pytest.fixture(scope="module")
def page_path(library) -> Path:
    """The library's page."""
    path = library.with_suffix(".html")
    write_report(library, path)
    return path


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests; each has a page of its own."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def page(browser, page_path):
    """The library's page, in a wide window."""
    with opened(browser, page_path, viewport={"width": 1280, "height": 900}) as page:
        yield page


def regions_of(path: Path) -> Region:
    """What a file's bytes are."""
    report = inspect_library(path)
    return lay_out(Image(memoryview(path.read_bytes()), str(path), []), report)


def all_regions(root: Region) -> list[Region]:
    """A region and all that are in it."""
    found = [root]
    for region in found:
        found.extend(region.children)
    return found


def content_of(path: Path) -> dict:
    """What the page of a library is made of."""
    report = inspect_library(path)
    data = memoryview(path.read_bytes())
    return describe(report, data, lay_out(Image(data, str(path), []), report))


def assert_filled(root: Region) -> None:
    """The children of each region lie end to end from its start to its end."""
    for region in all_regions(root):
        ends = [region.offset, *(child.end for child in region.children)]
        if region.children:
            assert [child.offset for child in region.children] == ends[:-1]
            assert ends[-1] == region.end
        assert region.nbytes > 0


# ---- the file as regions


@pytest.mark.parametrize("name", ["packed", "plain"])
def test_regions_are_the_sections_of_readelf(name, library) -> None:
    """Nothing is left out, and every section with bytes stands where readelf has it."""
    path = library if name == "packed" else Path(runtime._core.__file__)
    root = regions_of(path)
    assert_filled(root)
    run = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True)
    line = re.compile(r"\] (\S+) +(\w+) +[0-9a-f]+ ([0-9a-f]{6,}) ([0-9a-f]{6,}) ")
    expected = {
        (name, int(offset, 16), int(nbytes, 16))
        for name, kind, offset, nbytes in line.findall(run.stdout)
        if kind != "NOBITS" and int(nbytes, 16)
    }
    found = {(r.name, r.offset, r.nbytes) for r in all_regions(root) if r.kind == "section"}
    assert found == expected


def test_blob_entries_are_regions_with_their_bytes(library) -> None:
    """Each entry's region begins, in the file, with the length of its key and the key."""
    blob, data = inspect_library(library).blob, library.read_bytes()
    found = {r.entry: r for r in all_regions(regions_of(library)) if r.entry is not None}
    assert [found[i].name for i in sorted(found)] == [entry.key for entry in blob.entries]
    for region in found.values():
        key = region.name.encode()
        start = data[region.offset : region.offset + 8 + len(key)]
        assert start == len(key).to_bytes(8, "little") + key


def test_rows_of_the_arrays_are_those_of_the_modules(accepted_blob, pack_blob) -> None:
    """Whatever order a blob has, a module's row has its key, and leads to its imports."""
    _, path = accepted_blob
    content = content_of(pack_blob(path.with_suffix(".bin").read_bytes()))
    keys = [r[0] for r in sorted(content["regions"], key=lambda r: (r[-1] is None, r[-1] or 0))]
    pointers, children = content["row_ptr"], content["child_indices"]
    for index, (key, _, _, imports, *_, row) in enumerate(content["modules"]):
        if row >= 0:
            assert keys[content["row_entries"][row]] == key.replace("library", "_lib")
            assert content["rows"][row] == index
            if pointers:
                found = [content["rows"][i] for i in children[pointers[row] : pointers[row + 1]]]
                assert list(dict.fromkeys(found)) == imports


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 200), st.integers(-9, 200)), max_size=30)
)
def test_lying_headers_make_no_overlap(places) -> None:
    """Whatever offsets and sizes headers claim, the regions fill the file, each byte once."""
    root = Region("file", "file", "loaded", 0, 0, 100)
    nest(root, [Region("", "", "", *place) for place in places])
    fill(root, lambda parent, start, end: Region("", "gap", "", 9, start, end - start))
    assert_filled(root)


def test_many_parts_are_grouped() -> None:
    """However many entries a blob has, no bar has more blocks than can be told apart."""
    root = Region("file", "file", "loaded", 0, 0, 70_000)
    root.children = [Region("", "", "", 1, i, 1, entry=i) for i in range(70_000)]
    group(root)
    assert_filled(root)
    assert max(len(region.children) for region in all_regions(root)) <= 64
    assert root.children[0].name == "entries 0 to 1,093"


def test_bytes_in_the_page_are_bounded(library) -> None:
    """An entry's first 4,096 bytes are there, and no more."""
    content = content_of(library)
    nbytes = [len(head) * 3 // 4 for head in content["heads"]]
    assert 4096 <= max(nbytes) <= 4098
    assert max(region[5] for region in content["regions"]) > 100_000


# ---- the file that is written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain \u00e9\u4e2d", "plain \u00e9\u4e2d"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\x1b[31m\0", "\\x1b[31m\\x00"),
        ("\ud800\U000e0041", "\\ud800\\U000e0041"),
        ("two\n\tlines\r", "two\n\tlines\\r"),
        ("x" * 5000, "x" * 4096 + "... (5,000 characters)"),
    ],
)
def test_text_is_shown_not_obeyed(text, expected) -> None:
    """Control, bidi and lone surrogate characters are spelled out; a long text is cut."""
    assert visible(text) == expected


def test_page_is_one_file_that_data_cannot_end(page_path) -> None:
    """The only markup is ours: two scripts, the first of which is the data."""
    text = page_path.read_text(encoding="ascii")
    assert text.count("<script") == text.count("</script") == 2
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert block is not None
    assert "<" not in block[1]
    assert json.loads(block[1])["name"] == "model.so"
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!#)", text.replace(block[1], ""))


def test_page_is_the_same_again(library, page_path, tmp_path) -> None:
    """One library, one page: it can be compared and cached. A report serves as well as a path."""
    report = write_report(library, tmp_path / "a.html")
    assert report == write_report(report, tmp_path / "b.html")
    first, second = (tmp_path / "a.html").read_bytes(), (tmp_path / "b.html").read_bytes()
    assert first == second == page_path.read_bytes()


def test_page_is_no_program(page_path) -> None:
    """The file's mode is that of a text."""
    assert stat.S_IMODE(page_path.stat().st_mode) & 0o111 == 0


def test_command_writes_the_page(library, page_path, tmp_path, capsys) -> None:
    """``packer inspect --html`` writes it, and prints what it prints without."""
    assert main(["inspect", str(library), "--html", str(tmp_path / "page.html")]) == 0
    with_page = capsys.readouterr().out
    assert (tmp_path / "page.html").read_bytes() == page_path.read_bytes()
    assert main(["inspect", str(library)]) == 0
    assert with_page == capsys.readouterr().out


@pytest.mark.parametrize("name", ["model.so", "link.html"])
def test_page_never_replaces_the_library(name, library) -> None:
    """By its own name or a link to it, the library is refused as an output."""
    link = library.with_name("link.html")
    link.unlink(missing_ok=True)
    link.symlink_to(library)
    before = library.read_bytes()
    with pytest.raises(ExportError, match="would replace the library"):
        write_report(library, library.with_name(name))
    assert library.read_bytes() == before


def test_page_that_cannot_be_written_is_reported(library, tmp_path) -> None:
    """A missing folder is an ExportError, a missing library a LibraryLoadError."""
    with pytest.raises(ExportError, match="none"):
        write_report(library, tmp_path / "none" / "page.html")
    with pytest.raises(LibraryLoadError):
        write_report(tmp_path / "none.so", tmp_path / "page.html")
    assert os.listdir(tmp_path) == []


# ---- the figure of the documentation


def test_figure_of_the_docs_is_what_its_script_draws() -> None:
    """The committed picture is that of the golden blob, and well-formed."""
    docs = Path(__file__).parents[2] / "docs"
    drawn = runpy.run_path(str(docs / "make_figures.py"))["storage_figure"]()
    assert drawn == (docs / "storage.svg").read_text(encoding="utf-8")
    words = list(ElementTree.fromstring(drawn).itertext())
    assert words.count("cuda") == 2 * 3
    assert "import_tree_child_indices" in words


# ---- in a browser


@needs_browser
def test_page_shows_what_the_report_says(page, library) -> None:
    """Name, size, functions, tensors and libraries stand on the page; nothing went wrong."""
    assert page.locator("h1").inner_text() == "model.so"
    overview = page.locator("#overview").inner_text()
    assert f"{library.stat().st_size:,} bytes" in overview
    names = page.locator("#functions-list code").all_inner_texts()
    assert names[:3] == ["long add(long a, long b)", "main", "long sub(long a, long b)"]
    modules = inspect_library(library).modules
    assert len(names) == 3 + sum(len(module.functions) for module in modules[1:])
    assert page.locator("#weights-count").inner_text().startswith("10,000 of 10,000")
    assert "libc.so.6" in page.locator("#startup").inner_text()
    titles = page.locator("nav a").all_inner_texts()
    assert titles == page.locator("h2").all_inner_texts()


@needs_browser
def test_problems_stand_first(browser, library, tmp_path) -> None:
    """A library that would be refused still has its page, which says so before all else."""
    data = bytearray(library.read_bytes())
    offset = inspect_library(library).blob.offset
    data[offset : offset + 8] = (1 << 40).to_bytes(8, "little")
    broken = tmp_path / "broken.so"
    broken.write_bytes(data)
    report = write_report(broken, tmp_path / "broken.html")
    assert report.problems
    with opened(browser, tmp_path / "broken.html") as page:
        assert page.locator("#findings .problem").count() == len(report.problems)
        assert page.locator("main section").first.get_attribute("id") == "findings"


@needs_browser
def test_kernels_are_shown_with_what_they_take(page) -> None:
    """A function of a module has its signature, as far as the module says."""
    page.fill("#functions-query", "onerror")
    (text,) = page.locator("#functions-list code").all_inner_texts()
    assert text.endswith("(handle) [blockIdx.x]")


@needs_browser
def test_search_filters_functions(page) -> None:
    """Words are looked for in names, signatures and docs; the count is told."""
    total = page.locator("#functions-list code").count()
    page.fill("#functions-query", "SUB long")
    assert page.locator("#functions-list code").all_inner_texts() == ["long sub(long a, long b)"]
    assert page.locator("#functions-count").inner_text() == f"1 of {total}"
    page.fill("#functions-query", "bold")
    assert page.locator("#functions-list code").all_inner_texts() == ["long add(long a, long b)"]


@needs_browser
def test_click_on_a_block_shows_its_bytes(page, library) -> None:
    """The hex view of an entry is the file's bytes at the entry's offset."""
    page.click(".block[aria-label^='cuda, blob entry']")
    entry = next(e for e in inspect_library(library).blob.entries if e.key == "cuda")
    offset = inspect_library(library).blob.offset + 8 + entry.offset
    assert page.locator("#details h3").inner_text() == "cuda"
    shown = bytes.fromhex(" ".join(page.locator(".hex td:nth-child(2)").all_inner_texts()))
    assert shown == library.read_bytes()[offset : offset + entry.nbytes]
    assert page.locator(".hex .key").first.inner_text() == "04 00 00 00 00 00 00 00 63 75 64 61"
    assert "cuda, blob entry" in page.locator("#chosen").inner_text()


@needs_browser
def test_click_in_the_tree_shows_row_and_entry(page) -> None:
    """A node leads to its row pointers, its child indices and its entry on the map."""
    page.click("#tree .node:has-text('GraphExecutorFactory')")
    lit = page.locator("#arrays .lit").all_inner_texts()
    assert [text.split() for text in lit] == [["1", "2"], ["2", "3"], ["2", "2"]]
    assert "child_indices[2:3]: cuda" in page.locator("#arrays p").inner_text()
    pressed = page.locator(".block[aria-pressed='true'] .label").all_inner_texts()
    assert pressed[-1] == "GraphExecutorFactory"
    page.click("#arrays ol:last-of-type li:first-child")
    assert page.locator("[aria-selected='true'] > .node").first.inner_text().startswith("Graph")


@needs_browser
def test_map_works_by_keyboard(page) -> None:
    """Arrows move along a bar, into a block and out; one block of a bar is in the tab order."""
    assert page.locator(".bar").last.locator("[tabindex='0']").count() == 1
    page.locator(".bar").first.locator("[tabindex='0']").focus()
    focused = "document.activeElement.region.name"
    page.keyboard.press("Home")
    first = page.evaluate(focused)
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "ELF header"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "program headers"
    assert page.locator("#details h3").inner_text() == "program headers"
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == first
    page.keyboard.press("End")
    assert page.locator(".bar").first.locator(".block").last.get_attribute("aria-pressed") == "true"


@needs_browser
def test_tree_works_by_keyboard(page) -> None:
    """The keys of ARIA's tree pattern: up, down, open, close, choose."""
    page.locator("#tree > li").focus()
    names = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        names.append(page.evaluate("document.activeElement.module.typeKey"))
    assert names == ["GraphExecutorFactory", "cuda", "cuda", "cuda"]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    graph = page.locator("#tree li li").first
    assert graph.get_attribute("aria-expanded") == "false"
    page.keyboard.press("ArrowRight")
    assert graph.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Enter")
    assert graph.get_attribute("aria-selected") == "true"
    assert page.locator("#details h3").inner_text() == "GraphExecutorFactory"


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_until_it_is_toggled(browser, page_path, scheme) -> None:
    """The page is dark where the system is; the button turns it round, and says so."""
    background = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, page_path, color_scheme=scheme) as page:
        before = page.evaluate(background)
        button = page.get_by_role("button", name="Dark theme")
        assert button.get_attribute("aria-pressed") == str(scheme == "dark").lower()
        button.click()
        assert button.get_attribute("aria-pressed") == str(scheme == "light").lower()
        after = page.evaluate(background)
    dark, light = sorted([before, after], key=lambda c: sum(map(int, re.findall(r"\d+", c))))
    assert (before == dark) == (scheme == "dark")
    assert dark != light


@needs_browser
def test_ten_thousand_tensors_stay_smooth(page) -> None:
    """Only rows in sight exist, at whatever place; sorting and filtering work on all of them."""
    rows = page.locator("#weights-table .window [role='row']")
    assert rows.count() < 60
    page.eval_on_selector("#weights-table .window", "e => e.scrollTo(0, e.scrollHeight)")
    page.wait_for_selector("[aria-rowindex='10001']")
    assert rows.count() < 60
    page.click("[role='columnheader'] button:has-text('Name')")
    assert rows.first.locator("[role='cell']").first.inner_text() == "layer.0"
    page.fill("#weights-query", "layer.9999")
    assert rows.count() == 1
    assert page.locator("#weights-count").inner_text().startswith("1 of 10,000")
    frames = page.evaluate(
        """async () => {
            const sight = document.querySelector("#weights-table .window");
            const query = document.getElementById("weights-query");
            let count = 0;
            for (const text of ["", "float32", "int8", ""]) {
                query.value = text;
                query.dispatchEvent(new Event("input"));
                for (let i = 0; i < 10; i += 1) {
                    sight.scrollTop += 9000;
                    await new Promise(requestAnimationFrame);
                    count = Math.max(count, sight.querySelectorAll("[role='row']").length);
                }
            }
            return count;
        }"""
    )
    assert 0 < frames < 60


@needs_browser
def test_hostile_names_are_text(page) -> None:
    """Markup, escapes and bidi marks in names are read on the page, and do nothing there."""
    text = page.locator("#functions").inner_text()
    assert (
        "</script><script>document.title = 'owned'</script>\n\\u202etxet <!-- <b>bold</b>" in text
    )
    assert "<img src=x onerror=alert(1)>\\u202e\\x1b[31m" in text
    assert page.title() == "model.so: what is inside"
    assert page.locator("img, iframe, main b:has-text('bold')").count() == 0
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.content())


INTRUDER = """(address) => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'owned'";
    document.body.append(script);
    document.body.insertAdjacentHTML("beforeend",
        `<img src="${address}" onerror="document.title = 'owned'">`);
    return fetch(address).catch((error) => error.name);
}"""


@needs_browser
def test_policy_stops_what_should_never_be_there(browser, page_path) -> None:
    """Were markup to get in all the same, its script would not run and no request leave."""
    page = browser.new_page()
    page.goto(page_path.as_uri())
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert page.evaluate(INTRUDER, address) == "TypeError"
        server.settimeout(0.3)
        with pytest.raises(TimeoutError):
            server.accept()
    assert page.title() == "model.so: what is inside"
    page.close()


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 600])
def test_page_is_accessible(browser, page_path, scheme, width) -> None:
    """axe-core finds nothing: roles, names, headings, landmarks, contrast (WCAG 2 AA)."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    with opened(browser, page_path, bypass_csp=True, **options) as page:
        page.click("#tree .node:has-text('cuda')")
        result = Axe().run(page)
        assert result.violations_count == 0, result.generate_report()


@needs_browser
@pytest.mark.parametrize("width", [320, 600, 1280])
def test_page_fits_its_window(browser, page_path, width) -> None:
    """No reader has to scroll sideways (WCAG 1.4.10)."""
    with opened(browser, page_path, viewport={"width": width, "height": 700}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@needs_browser
def test_page_prints(browser, page_path) -> None:
    """On paper there are no controls, and the weights are a list of the largest."""
    with opened(browser, page_path) as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert not page.locator("nav").is_visible()
        assert not page.locator("#theme").is_visible()
        assert page.locator("#weights-table .window [role='row']").count() == 300
        assert page.pdf().startswith(b"%PDF")


@needs_browser
def test_wide_tree_opens_part_by_part(browser, tmp_path) -> None:
    """A module with 700 imports shows some of them, and the rest when asked."""
    root = runtime.MetadataModule()
    for index in range(700):
        root.import_module(kernels("cuda", f"k{index}", f"// {index}"))
    path = packer.export_library(root, tmp_path / "wide.so")
    write_report(path, tmp_path / "wide.html")
    with opened(browser, tmp_path / "wide.html") as page:
        items = page.locator("#tree li")
        assert items.count() == 1 + 200 + 1
        page.click("#tree .node:has-text('500 more')")
        assert items.count() == 1 + 400 + 1
        assert page.locator(".block").count() < 400
