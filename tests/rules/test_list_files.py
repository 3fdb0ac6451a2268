"""List files: their forms, their versions, and what is wrong with them."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.rules.list_files import ListFileError, ListFiles


@pytest.fixture
def files():
    return ListFiles()


def test_csv_txt_and_parquet_hold_the_same_ids(files, tmp_path):
    (tmp_path / "a.csv").write_text('note,item_id\nx,"a,1"\ny,b\nz,b\nw,\n')
    (tmp_path / "a.txt").write_text("a,1\r\nb\r\n\r\nb\r\n")
    pq.write_table(pa.table({"item_id": ["a,1", "b", None, "b"]}), tmp_path / "a.parquet")
    assert {files.read(tmp_path / f"a.{form}").values for form in ("csv", "txt", "parquet")} == {("a,1", "b")}


def test_a_quoted_id_may_hold_a_line_break_in_a_csv(files, tmp_path):
    (tmp_path / "a.csv").write_text('item_id\n"line\nbreak"\n')
    assert files.read(tmp_path / "a.csv").values == ("line\nbreak",)


def test_the_column_can_be_named_and_a_byte_order_mark_is_ignored(files, tmp_path):
    (tmp_path / "a.csv").write_text("sku,why\n7,x\n", encoding="utf-8-sig")
    assert files.read(tmp_path / "a.csv", "sku").values == ("7",)


def test_blanks_around_an_id_do_not_lift_its_ban(files, tmp_path):
    (tmp_path / "a.txt").write_text("7 \n\tb\n \n")
    assert files.read(tmp_path / "a.txt").values == ("7 ", "7", "\tb", "b")
    assert files.read(tmp_path / "a.txt").integers == (7,)


def test_whole_numbers_with_gaps_are_whole_numbers(files, tmp_path):
    pq.write_table(pa.table({"item_id": [7.0, None, float("nan"), 2.5]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("item_id\n7.0\n\n2.5\n")
    assert files.read(tmp_path / "a.parquet").integers == (7,)
    assert files.read(tmp_path / "a.csv").integers == (7,)


def test_a_parquet_with_one_column_needs_no_name(files, tmp_path):
    pq.write_table(pa.table({"x": [7, 8]}), tmp_path / "a.parquet")
    assert files.read(tmp_path / "a.parquet").integers == (7, 8)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(1)])
def test_ids_that_a_parquet_holds_as_bytes_are_text(files, tmp_path, kind):
    pq.write_table(pa.table({"item_id": pa.array([b"a", None, b"7"], kind)}), tmp_path / "a.parquet")
    assert files.read(tmp_path / "a.parquet").values == ("a", "7")


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([["a"], ["b"]], "no ids in its column 'item_id' but values of the type list<"),
        ([{"id": "a"}], "but values of the type struct<"),
        ([b"\xff"], "is not UTF-8 text"),
    ],
)
def test_a_parquet_whose_values_are_no_ids_is_refused(files, tmp_path, ids, says):
    pq.write_table(pa.table({"item_id": ids}), tmp_path / "a.parquet")
    with pytest.raises(ListFileError, match=says):
        files.read(tmp_path / "a.parquet")


def test_a_replaced_file_is_read_again_and_has_another_version(files, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a\n")
    first = files.read(path)
    stat = path.stat()
    fresh = tmp_path / "new"
    fresh.write_text("b\n")
    os.utime(fresh, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same time, same size, other file
    fresh.replace(path)
    second = files.read(path)
    assert (first.values, second.values) == (("a",), ("b",))
    assert first.version != second.version
    assert files.read(path, version=first.version) is first


def test_an_unchanged_file_is_not_read_again(files, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a\n")
    assert files.read(path) is files.read(path)


def test_the_same_content_has_the_same_version_in_every_file(files, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("a\n")
    assert files.read(tmp_path / "a.txt").version == files.read(tmp_path / "b.txt").version


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.csv", b"", "no column 'item_id'"),
        ("headerless.csv", b"13\n14\n", "no column 'item_id'.*13"),
        ("other_header.csv", b"sku,why\n13,x\n", "no column 'item_id'.*sku, why"),
        ("empty.txt", b"", "is empty"),
        ("blank.txt", b"\n \n", "is empty"),
        ("mark_only.txt", b"\xef\xbb\xbf\r\n", "is empty"),
        ("comments_only.txt", b"# nothing yet\n\n  # to be filled\n", "is empty"),
        ("header_only.csv", b"item_id\n", "is empty: it holds no id. .* allow_empty: true"),
        ("header_and_mark.csv", b"\xef\xbb\xbfitem_id,why\r\n", "is empty"),
        ("blank_ids.csv", b"item_id,why\n,recalled\n  ,\n\n", "is empty"),
        ("not_utf8.txt", b"caf\xe9\n", "not UTF-8 text"),
        ("unfinished_quote.csv", b'item_id\n"abc', "cannot be read as csv"),
        ("truncated.parquet", b"PAR1xxxx", "cannot be read as parquet"),
        ("list.xlsx", b"PK", "use one of .csv, .txt, .parquet"),
    ],
)
def test_a_list_that_cannot_be_understood_says_why(files, tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ListFileError, match=says):
        files.read(tmp_path / name)


def test_a_parquet_whose_footer_is_broken_says_so(files, tmp_path):
    pq.write_table(pa.table({"item_id": ["a", "b"]}), tmp_path / "a.parquet")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[-60:-20] = bytes(byte ^ 0xFF for byte in content[-60:-20])
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(ListFileError, match="cannot be read as parquet"):
        files.read(tmp_path / "a.parquet")


def test_a_missing_list_and_a_folder_say_so(files, tmp_path):
    with pytest.raises(ListFileError, match="cannot be read: No such file"):
        files.read(tmp_path / "no.txt")
    with pytest.raises(ListFileError, match="cannot be read: Is a directory"):
        files.read(tmp_path)


@pytest.mark.parametrize(
    "column", [pa.array([], pa.string()), pa.array([None, None], pa.int64()), pa.array([float("nan")])]
)
def test_a_parquet_without_an_id_is_empty(files, tmp_path, column):
    pq.write_table(pa.table({"item_id": column}), tmp_path / "a.parquet")
    with pytest.raises(ListFileError, match="is empty: it holds no id"):
        files.read(tmp_path / "a.parquet")
    assert files.read(tmp_path / "a.parquet", allow_empty=True).values == ()


@pytest.mark.parametrize(("name", "content"), [("a.csv", "item_id\n"), ("a.txt", ""), ("b.txt", "\n\n")])
def test_an_empty_list_is_read_if_allow_empty_is_set(files, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert files.read(tmp_path / name, allow_empty=True).values == ()


def test_a_list_that_becomes_empty_is_refused_also_by_its_version(files, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item_id\n13\n")
    assert files.read(path).values == ("13",)
    path.write_text("item_id\n")
    with pytest.raises(ListFileError, match="is empty"):
        files.read(path)
    version = files.read(path, allow_empty=True).version
    with pytest.raises(ListFileError, match="is empty"):
        files.read(path, version=version)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_of_another_name_gives_the_parameters_that_name_it(files, tmp_path, ending):
    path = tmp_path / f"blacklist.{ending}"
    table = pa.table({"sku": ["a"], "reason": ["recalled"]})
    if ending == "csv":
        path.write_text("sku,reason\na,recalled\n")
    else:
        pq.write_table(table, path)
    advice = "set the pack's parameter blacklist_column, or list_column in your own suite"
    with pytest.raises(ListFileError, match=f"has no column 'item_id'.*; {advice}"):
        files.read(path)
