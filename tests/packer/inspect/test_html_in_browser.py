"""The page of a library in a real browser: by mouse and keyboard, in the dark, under attack."""

from __future__ import annotations

import re
import socket

import pytest

import packer
import runtime
from packer.inspect import inspect_library
from packer.inspect.page import write_report

from .browser import opened, running_browser
from .html_page import kernels


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests; each has a separate page."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def page(browser, page_path):
    """The library's page, in a wide window."""
    with opened(browser, page_path, viewport={"width": 1280, "height": 900}) as page:
        yield page


def test_page_agrees_with_the_report(page, hostile_library) -> None:
    """Name, size, functions, tensors and libraries are on the page, without errors."""
    assert page.locator("h1").inner_text() == "model.so"
    overview = page.locator("#overview").inner_text()
    assert f"{hostile_library.stat().st_size:,} bytes" in overview
    names = page.locator("#functions-list code").all_inner_texts()
    assert names[:3] == ["long add(long a, long b)", "main", "long sub(long a, long b)"]
    modules = inspect_library(hostile_library).modules
    assert len(names) == 3 + sum(len(module.functions) for module in modules[1:])
    assert page.locator("#weights-count").inner_text().startswith("10,000 of 10,000")
    assert "libc.so.6" in page.locator("#startup").inner_text()
    titles = page.locator("nav a").all_inner_texts()
    assert titles == page.locator("h2").all_inner_texts()


def test_problems_are_first(browser, hostile_library, tmp_path) -> None:
    """A library that a load would refuse still has its page, which states that first."""
    data = bytearray(hostile_library.read_bytes())
    offset = inspect_library(hostile_library).blob.offset
    data[offset : offset + 8] = (1 << 40).to_bytes(8, "little")
    broken = tmp_path / "broken.so"
    broken.write_bytes(data)
    report = write_report(broken, tmp_path / "broken.html")
    assert report.problems
    with opened(browser, tmp_path / "broken.html") as page:
        assert page.locator("#findings .problem").count() == len(report.problems)
        assert page.locator("main section").first.get_attribute("id") == "findings"


def test_kernels_are_shown_with_their_parameters(page) -> None:
    """A function of a module has its signature, as far as the module states it."""
    page.fill("#functions-query", "onerror")
    (text,) = page.locator("#functions-list code").all_inner_texts()
    assert text.endswith("(handle) [blockIdx.x]")


def test_search_filters_functions(page) -> None:
    """Names, signatures and docs are searched; the page shows the count."""
    total = page.locator("#functions-list code").count()
    page.fill("#functions-query", "SUB long")
    assert page.locator("#functions-list code").all_inner_texts() == ["long sub(long a, long b)"]
    assert page.locator("#functions-count").inner_text() == f"1 of {total}"
    page.fill("#functions-query", "bold")
    assert page.locator("#functions-list code").all_inner_texts() == ["long add(long a, long b)"]


def test_click_on_a_block_shows_its_bytes(page, hostile_library) -> None:
    """The hex view of an entry is the file's bytes at the entry's offset."""
    page.click(".block[aria-label^='cuda, blob entry']")
    entry = next(e for e in inspect_library(hostile_library).blob.entries if e.key == "cuda")
    offset = inspect_library(hostile_library).blob.offset + 8 + entry.offset
    assert page.locator("#details h3").inner_text() == "cuda"
    shown = bytes.fromhex(" ".join(page.locator(".hex td:nth-child(2)").all_inner_texts()))
    assert shown == hostile_library.read_bytes()[offset : offset + entry.nbytes]
    assert page.locator(".hex .key").first.inner_text() == "04 00 00 00 00 00 00 00 63 75 64 61"
    assert "cuda, blob entry" in page.locator("#chosen").inner_text()


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_until_it_is_toggled(browser, page_path, scheme) -> None:
    """The page is dark if the system is; the button switches it, and is labelled."""
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


def test_hostile_names_are_text(page) -> None:
    """Markup, escapes and bidi marks in names are read on the page, and do nothing there."""
    text = page.locator("#functions").inner_text()
    assert (
        "</script><script>document.title = 'owned'</script>\n\\u202etxet <!-- <b>bold</b>" in text
    )
    assert "<img src=x onerror=alert(1)>\\u202e\\x1b[31m" in text
    assert page.title() == "model.so: contents"
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


def test_policy_blocks_injected_markup(browser, page_path) -> None:
    """If markup got into the page, its script would not run and no request would leave."""
    page = browser.new_page()
    page.goto(page_path.as_uri())
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert page.evaluate(INTRUDER, address) == "TypeError"
        server.settimeout(0.3)
        with pytest.raises(TimeoutError):
            server.accept()
    assert page.title() == "model.so: contents"
    page.close()


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


@pytest.mark.parametrize("width", [320, 600, 1280])
def test_page_fits_its_window(browser, page_path, width) -> None:
    """No reader must scroll sideways (WCAG 1.4.10)."""
    with opened(browser, page_path, viewport={"width": width, "height": 700}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width


BROKEN_WORDS = """() => {
    const broken = [];
    for (const cell of document.querySelectorAll("th, td, .badge, dt")) {
        const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
        for (let node = walk.nextNode(); node; node = walk.nextNode()) {
            for (const found of node.data.matchAll(/[^_.:/ -]+/g)) {
                const range = document.createRange();
                range.setStart(node, found.index);
                range.setEnd(node, found.index + found[0].length);
                const lines = new Set([...range.getClientRects()].map((part) => part.top));
                if (lines.size > 1 && found[0].length <= 32) broken.push(found[0]);
            }
        }
    }
    return broken;
}"""


@pytest.mark.parametrize("width", [320, 360, 800])
def test_no_word_of_a_table_is_broken(browser, page_path, width) -> None:
    """A narrow table scrolls; a long name breaks after its separators."""
    with opened(browser, page_path, viewport={"width": width, "height": 700}) as page:
        assert page.locator("#details td:has-text('blob entry')").count() > 2
        assert page.evaluate(BROKEN_WORDS) == []


def test_page_prints(browser, page_path) -> None:
    """The printed page has no controls, and lists the largest weights."""
    with opened(browser, page_path) as page:
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert not page.locator("nav").is_visible()
        assert not page.locator("#theme").is_visible()
        assert page.locator("#weights-table .window [role='row']").count() == 300
        assert page.pdf().startswith(b"%PDF")


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
