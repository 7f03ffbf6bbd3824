import pytest

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.marked_blocks import renew, renewed

WRITERS = {"settings": lambda name: f"of {name}\n", "table": lambda _: "a table"}


def test_blocks_are_replaced_and_the_rest_is_kept():
    text = "# A\n<!-- settings sgd -->\nold\n\nolder\n<!-- /settings -->\nB\n<!-- table -->\n<!-- /table -->\n"
    expected = "# A\n<!-- settings sgd -->\nof sgd\n<!-- /settings -->\nB\n<!-- table -->\na table\n<!-- /table -->\n"
    assert renewed(text, WRITERS) == expected
    assert renewed(expected, WRITERS) == expected


def test_blocks_without_a_writer_and_other_comments_are_kept():
    text = "<!-- other -->\nx\n<!-- /other -->\n<!-- results/x.md, as it was written -->\n"
    assert renewed(text, WRITERS) == text


def test_a_block_that_is_not_closed_is_an_error():
    with pytest.raises(InputError, match=r"page.md: a block <!-- table --> is not closed"):
        renewed("<!-- table -->\nold\n", WRITERS, "page.md")


def test_a_file_is_written_only_if_it_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- table -->\nold\n<!-- /table -->\n")
    assert renew(page, WRITERS)
    date = page.stat().st_mtime_ns
    assert not renew(page, WRITERS)
    assert page.stat().st_mtime_ns == date
    with pytest.raises(InputError, match="no such file"):
        renew(tmp_path / "none.md", WRITERS)
