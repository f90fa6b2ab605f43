"""Putting sets into the cache: downloads, copies and archives, each whole or not at all."""

import io
import shutil
import stat
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest

from wgcn.base.errors import InputError
from wgcn_paper.datasets import DATASETS, layout, load_dataset, planetoid, sources, stop_words
from wgcn_paper.datasets.prepare import _LATER_STOP_WORDS, prepare

TEXT_GCN = f"/{sources.TEXT_GCN}/"
PLANETOID = f"/{sources.PLANETOID}/"
NLTK_DATA = f"/{sources.NLTK_DATA}/packages/corpora/stopwords.zip"


def left(folder: Path) -> list[str]:
    """Everything in a data folder but the folders of the kinds."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*")} if folder.exists() else set()
    return sorted(found - {"text", "citation"})


def stop_words_zip(words: str, member: str = "stopwords/english") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("stopwords/README", "about")
        archive.writestr(member, words)
    return buffer.getvalue()


@pytest.fixture
def net(site, small, monkeypatch):
    """The repositories of the small sets, on this machine."""
    monkeypatch.setattr(sources, "GITHUB", site.url)
    site.files = {TEXT_GCN + name: data for name, data in small.text_gcn.items()}
    site.files |= {PLANETOID + name: data for name, data in small.planetoid.items()}
    site.files[NLTK_DATA] = stop_words_zip(small.words)
    return site


WHOLE = [
    "citation/cora",
    "citation/cora/adjacency.npz",
    "citation/cora/features.npz",
    "citation/cora/labels.npy",
    "citation/cora/split.npz",
    "stopwords_english.txt",
    "text/r8",
    "text/r8/test.tsv.gz",
    "text/r8/train.tsv.gz",
]
NAMES = ["r8", "cora", "stopwords"]


def check(text_set, citation_set):
    assert load_dataset("r8").texts == text_set.texts
    assert layout.citation_digest(load_dataset("cora")) == layout.citation_digest(citation_set)
    assert stop_words() == {"the", "of", "it"}


# Downloads


def test_downloads_are_converted_and_nothing_else_is_left(net, small, text_set, citation_set):
    seen = {}
    assert prepare(NAMES, progress=lambda file, done, total: seen.update({file: (done, total)})) == dict.fromkeys(
        NAMES, True
    )
    check(text_set, citation_set)
    assert left(small.data) == WHOLE
    assert len(net.requests) == 2 + 8 + 1
    assert "ind.cora.graph" in seen
    assert all(done == total for done, total in seen.values())


def test_a_complete_set_is_left_as_it_is(net, small):
    prepare(NAMES)
    asked, times = len(net.requests), {path: path.stat().st_mtime_ns for path in small.data.rglob("*.*")}
    assert prepare(NAMES) == dict.fromkeys(NAMES, False)
    assert len(net.requests) == asked
    assert {path: path.stat().st_mtime_ns for path in small.data.rglob("*.*")} == times


def test_a_damaged_set_is_prepared_again(net, small, text_set, citation_set):
    prepare(NAMES)
    (small.data / "text/r8/train.tsv.gz").write_bytes(b"damaged")
    (small.data / "citation/cora/split.npz").unlink()
    (small.data / "stopwords_english.txt").write_text("a\nb\n")
    (small.data / "text/r8/notes.txt").write_text("mine")
    assert prepare(NAMES) == dict.fromkeys(NAMES, True)
    check(text_set, citation_set)
    assert (small.data / "text/r8/notes.txt").read_text() == "mine"
    (small.data / "text/r8/notes.txt").unlink()
    assert left(small.data) == WHOLE


def test_a_set_behind_a_link_is_made_again_behind_it(net, small):
    prepare(["r8"])
    path, elsewhere = small.data / "text/r8", small.data.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    (elsewhere / "train.tsv.gz").write_bytes(b"damaged")
    assert prepare(["r8"]) == {"r8": True}
    assert path.is_symlink()
    assert prepare(["r8"]) == {"r8": False}


def test_the_mirror_replaces_github(net, small, monkeypatch, text_set, citation_set):
    monkeypatch.setattr(sources, "GITHUB", "http://127.0.0.1:1")
    monkeypatch.setenv("WGCN_MIRROR", f"{net.url}/")
    prepare(NAMES)
    check(text_set, citation_set)


def test_other_documents_than_published_are_not_put_in_place(net, small):
    net.files[TEXT_GCN + "data/corpus/R8.txt"] = b"It barks.\nIt purrs.\nIt moos."
    with pytest.raises(InputError, match=r"text_gcn/\w+ gives other content for 'r8' than was published"):
        prepare(["r8"])
    assert left(small.data) == []
    net.files[TEXT_GCN + "data/R8.txt"] += b"\nx\ttest\tdog"
    net.files[TEXT_GCN + "data/corpus/R8.txt"] += b"\nx"
    with pytest.raises(InputError, match="gives 2 test documents of 'r8'; 1 were published"):
        prepare(["r8"])
    assert left(small.data) == []


def test_another_pickle_than_the_original_is_never_loaded(net, small, monkeypatch):
    net.files[PLANETOID + "data/ind.cora.graph"] = b"cos\nsystem\n(U\x04truetR."
    monkeypatch.setattr(planetoid, "unpickle", lambda *_: pytest.fail("it was loaded"))
    with pytest.raises(InputError, match=r"ind\.cora\.graph cannot be downloaded: its SHA-256 is not.*--from"):
        prepare(["cora"])
    assert left(small.data) == []


def test_a_download_that_fails_leaves_nothing_and_can_be_repeated(net, small, text_set, citation_set):
    missing = net.files.pop(PLANETOID + "data/ind.cora.test.index")
    with pytest.raises(InputError, match=r"ind\.cora\.test\.index cannot be downloaded: the server answers 404"):
        prepare(NAMES)
    assert left(small.data) == ["text/r8", "text/r8/test.tsv.gz", "text/r8/train.tsv.gz"]
    net.files[PLANETOID + "data/ind.cora.test.index"] = missing
    assert prepare(NAMES) == {"r8": False, "cora": True, "stopwords": True}
    check(text_set, citation_set)
    assert left(small.data) == WHOLE


def test_a_longer_list_of_stop_words_says_what_is_wrong(net, small):
    net.files[NLTK_DATA] = stop_words_zip(small.words + "extra\n")
    with pytest.raises(InputError, match=r"has 4 words that are not the 179.*Other versions of the list have more"):
        prepare(["stopwords"])
    assert left(small.data) == []


def test_the_words_that_were_added_in_2025_are_taken_out(net, small):
    net.files[NLTK_DATA] = stop_words_zip(small.words + "i'm\nwe've\n")
    prepare(["stopwords"])
    assert stop_words() == {"the", "of", "it"}


@pytest.mark.parametrize("data", [b"no archive", stop_words_zip("it\n", "stopwords/german"), b""])
def test_stop_words_that_are_not_in_the_archive(net, small, data):
    net.files[NLTK_DATA] = data
    with pytest.raises(InputError, match=r"stopwords\.zip"):
        prepare(["stopwords"])
    assert left(small.data) == []


# Names and places


@pytest.mark.parametrize(("name", "message"), [("r9", "There is no data set 'r9'"), ("docs", "nothing to prepare")])
def test_wrong_names_are_found_before_any_work(net, small, name, message):
    with pytest.raises(InputError, match=message):
        prepare(["r8", name])
    assert net.requests == []
    assert left(small.data) == []


def test_the_cache_cannot_be_written(net, small):
    small.data.parent.write_text("in the way")
    with pytest.raises(InputError, match="cannot be written"):
        prepare(["r8"])


def test_nowhere_to_put_it(net, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(layout, "cache_folder", nowhere)
    with pytest.raises(InputError, match="Set WGCN_CACHE"):
        prepare(["r8"])


# Copies


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def test_a_folder_in_our_layout_is_copied(small, layout_folder, text_set, citation_set):
    assert prepare(NAMES, layout_folder) == dict.fromkeys(NAMES, True)
    check(text_set, citation_set)
    assert left(small.data) == WHOLE
    for name in ("text/r8/train.tsv.gz", "citation/cora/split.npz"):
        assert (small.data / name).read_bytes() == (layout_folder / name).read_bytes()


def test_a_damaged_folder_in_our_layout_is_not(small, layout_folder):
    (layout_folder / "text/r8/train.tsv.gz").write_bytes(b"damaged")
    (layout_folder / "citation/cora/labels.npy").write_bytes(b"damaged")
    for name in ("r8", "cora"):
        with pytest.raises(InputError):
            prepare([name], layout_folder)
    assert left(small.data) == []


def test_checkouts_are_converted(small, tmp_path, text_set, citation_set):
    prepare(["r8"], write_files(tmp_path / "text_gcn", small.text_gcn))
    prepare(["cora"], write_files(tmp_path / "planetoid", small.planetoid))
    prepare(["stopwords"], write_files(tmp_path / "nltk", {"corpora/stopwords/english": small.words.encode()}))
    check(text_set, citation_set)
    assert left(small.data) == WHOLE


def test_a_copy_without_the_set_says_what_it_should_have(small, tmp_path):
    with pytest.raises(InputError, match=r"neither text/r8/train\.tsv\.gz.* nor data/R8\.txt, data/corpus/R8\.txt"):
        prepare(["r8"], tmp_path)
    with pytest.raises(InputError, match=r"neither citation/cora/features\.npz.* nor data/ind\.cora\.x"):
        prepare(["cora"], tmp_path)
    with pytest.raises(InputError, match=r"stopwords/english"):
        prepare(["stopwords"], tmp_path)
    with pytest.raises(InputError, match="There is no folder or archive"):
        prepare(["r8"], tmp_path / "nothing")
    assert left(small.data) == []


def test_files_of_a_checkout_are_limited_and_original(small, tmp_path, monkeypatch):
    changed = small.planetoid | {"data/ind.cora.test.index": b"6\n4\n\n"}
    with pytest.raises(InputError, match=r"data/ind\.cora\.test\.index is not the original file"):
        prepare(["cora"], write_files(tmp_path / "planetoid", changed))
    monkeypatch.setattr(sources, "MAX_MEMBER_BYTES", 10)
    with pytest.raises(InputError, match=r"R8\.txt has more than 10 bytes"):
        prepare(["r8"], write_files(tmp_path / "text_gcn", small.text_gcn))
    assert left(small.data) == []


# Archives


def pack_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def pack_tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def under(top: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{top}{name}": data for name, data in files.items()}


PACKERS = [(pack_zip, "copy.zip"), (pack_tar, "copy.tar.gz")]


@pytest.mark.parametrize(("pack", "file"), PACKERS)
@pytest.mark.parametrize("top", ["", "text_gcn-master/", "./"])
def test_archives_are_read_with_and_without_a_top_folder(small, tmp_path, text_set, citation_set, pack, file, top):
    extra = {"README.md": b"about", "data/corpus/R9.txt": b"more"}
    for name, files in (
        ("r8", small.text_gcn),
        ("cora", small.planetoid),
        ("stopwords", {"stopwords/english": b"of\nthe\nit"}),
    ):
        prepare([name], pack(tmp_path / file, under(top, extra | dict(reversed(files.items())))))
    check(text_set, citation_set)
    assert left(small.data) == WHOLE


def test_an_archive_of_our_layout_is_read(small, layout_folder, tmp_path, text_set, citation_set):
    shutil.make_archive(str(tmp_path / "copy"), "zip", layout_folder)
    prepare(NAMES, tmp_path / "copy.zip")
    check(text_set, citation_set)


@pytest.mark.parametrize(("pack", "file"), PACKERS)
@pytest.mark.parametrize("top", ["../", "/", "a/../", "../../a/", "a/b/", "a//", "A:\\"])
def test_members_elsewhere_are_not_found(small, tmp_path, pack, file, top):
    before = sorted(tmp_path.rglob("*"))
    pack(tmp_path / file, under(top, small.text_gcn))
    with pytest.raises(InputError, match="does not have 'r8'"):
        prepare(["r8"], tmp_path / file)
    assert left(small.data) == []
    (tmp_path / file).unlink()
    assert [path for path in sorted(tmp_path.rglob("*")) if "cache" not in path.parts] == before


@pytest.mark.parametrize(("pack", "file"), PACKERS)
def test_two_top_folders_are_ambiguous(small, tmp_path, pack, file):
    pack(tmp_path / file, under("a/", small.text_gcn) | under("b/", small.text_gcn))
    with pytest.raises(InputError, match="does not have 'r8'"):
        prepare(["r8"], tmp_path / file)
    assert left(small.data) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_links_and_devices_in_a_tar_archive_are_refused(small, tmp_path, kind):
    secret = tmp_path / "secret.txt"
    secret.write_bytes(small.text_gcn["data/corpus/R8.txt"])
    with tarfile.open(tmp_path / "copy.tar.gz", "w:gz") as archive:
        for name, data in {**under("top/", small.text_gcn), "top/other": b"x"}.items():
            member = tarfile.TarInfo(name)
            if name.endswith("corpus/R8.txt"):
                member.type, member.linkname = kind, str(secret) if kind == tarfile.SYMTYPE else "top/data/R8.txt"
                archive.addfile(member)
            else:
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    with pytest.raises(InputError, match=r"top/data/corpus/R8\.txt is not a plain file"):
        prepare(["r8"], tmp_path / "copy.tar.gz")
    assert left(small.data) == []


def test_links_in_a_zip_archive_are_refused(small, tmp_path):
    with zipfile.ZipFile(tmp_path / "copy.zip", "w") as archive:
        archive.writestr("data/R8.txt", small.text_gcn["data/R8.txt"])
        link = zipfile.ZipInfo("data/corpus/R8.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match=r"data/corpus/R8\.txt is not a plain file"):
        prepare(["r8"], tmp_path / "copy.zip")
    assert left(small.data) == []


@pytest.mark.parametrize(("pack", "file"), PACKERS)
def test_a_bomb_is_refused_unread(small, tmp_path, monkeypatch, pack, file):
    monkeypatch.setattr(sources, "MAX_MEMBER_BYTES", 10**6)
    pack(tmp_path / file, small.text_gcn | {"data/corpus/R8.txt": b"\0" * (10**6 + 1)})
    assert (tmp_path / file).stat().st_size < 10**4
    with pytest.raises(InputError, match=r"R8\.txt has 1,000,001 bytes; at most 1,000,000 are read"):
        prepare(["r8"], tmp_path / file)
    assert left(small.data) == []


def test_a_zip_archive_that_lies_about_a_size(small, tmp_path):
    path = pack_zip(tmp_path / "copy.zip", small.text_gcn | {"data/corpus/R8.txt": b"\0" * 10**6})
    data = bytearray(path.read_bytes())
    sizes = (10**6).to_bytes(4, "little")
    while (place := data.find(sizes)) >= 0:
        data[place : place + 4] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"copy\.zip"):
        prepare(["r8"], path)
    assert left(small.data) == []


def test_a_tar_archive_with_too_much_beside_the_set(small, tmp_path, monkeypatch):
    path = pack_tar(tmp_path / "copy.tar.gz", small.text_gcn | {"other": b"\0" * 10**5})
    monkeypatch.setattr(sources, "MAX_ARCHIVE_BYTES", 10**5)
    with pytest.raises(InputError, match="holds more than 100,000 bytes"):
        prepare(["r8"], path)
    monkeypatch.setattr(sources, "MAX_MEMBERS", 2)
    with pytest.raises(InputError, match="2 members"):
        prepare(["r8"], path)
    assert left(small.data) == []


@pytest.mark.parametrize(("pack", "file"), PACKERS)
def test_wrong_and_missing_members(small, tmp_path, pack, file):
    pack(tmp_path / file, {"data/R8.txt": small.text_gcn["data/R8.txt"], "data/corpus/r8.txt": b"x"})
    with pytest.raises(InputError, match="does not have 'r8'"):
        prepare(["r8"], tmp_path / file)
    pack(tmp_path / file, small.text_gcn | {"data/corpus/R8.txt": b"It barks.\nIt purrs.\nIt moos."})
    with pytest.raises(InputError, match="other content for 'r8'"):
        prepare(["r8"], tmp_path / file)
    assert left(small.data) == []


@pytest.mark.parametrize(
    "data", [b"", b"neither", b"PK\x05\x06", b"\x1f\x8b\x08\0", b"\x1f\x8b" + b"\0" * 600, b"\0" * 512]
)
def test_files_that_are_no_archive(small, tmp_path, data):
    (tmp_path / "copy.zip").write_bytes(data)
    with pytest.raises(InputError, match=r"copy\.zip"):
        prepare(["r8"], tmp_path / "copy.zip")
    assert left(small.data) == []


@pytest.mark.parametrize(("pack", "file"), PACKERS)
def test_cut_archives(small, tmp_path, pack, file):
    whole = pack(tmp_path / file, small.text_gcn | {"data/filler": bytes(range(256)) * 100}).read_bytes()
    for size in range(0, len(whole), 97):
        (tmp_path / file).write_bytes(whole[:size])
        with pytest.raises(InputError, match="copy"):
            prepare(["r8"], tmp_path / file)
    assert left(small.data) == []


def test_an_encrypted_archive(small, tmp_path):
    path = pack_zip(tmp_path / "copy.zip", small.text_gcn)
    data = bytearray(path.read_bytes())
    for start, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = -1
        while (place := data.find(start, place + 1)) >= 0:
            data[place + flag] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="encrypted"):
        prepare(["r8"], path)
    assert left(small.data) == []


# The real sets, as their repository has them


@pytest.mark.parametrize("name", [name for name, known in DATASETS.items() if known.kind == "text"])
def test_real_texts_survive_the_way_from_their_repository(cache, data_folder, tmp_path, monkeypatch, name):
    monkeypatch.setenv("WGCN_DATA", str(data_folder))
    real, source = load_dataset(name), DATASETS[name].source
    order = [*real.test, *real.train] if name in ("20ng", "ohsumed") else [*real.train, *real.test]
    first = real.train[-1]
    listing = [f"{i}\t{'training' if i <= first else 'test'}\t{real.labels[i]}" for i in order]
    files = {
        f"data/{source}.txt": "\n".join(listing).encode(),
        f"data/corpus/{source}.txt": "\n".join(real.texts[i] for i in order).encode("latin-1"),
    }
    monkeypatch.delenv("WGCN_DATA")
    assert prepare([name], write_files(tmp_path / "text_gcn", files)) == {name: True}
    found = load_dataset(name)
    assert found.texts == real.texts
    assert found.labels.tolist() == real.labels.tolist()


@pytest.mark.parametrize("name", ["citeseer", "pubmed", "cora"])
def test_real_networks_survive_the_way_from_their_repository(cache, data_folder, tmp_path, name):
    originals = data_folder / "citation" / name / "planetoid"
    if not originals.is_dir():
        pytest.skip("needs the original planetoid files")
    with zipfile.ZipFile(tmp_path / "planetoid.zip", "w") as archive:
        for path in originals.iterdir():
            archive.write(path, f"planetoid-master/data/{path.name}")
    assert prepare([name], tmp_path / "planetoid.zip") == {name: True}
    assert layout.citation_digest(load_dataset(name)) == DATASETS[name].digest


def test_real_stop_words_are_prepared(cache, data_folder, tmp_path):
    (tmp_path / "stopwords").mkdir()
    words = [*(data_folder / "stopwords_english.txt").read_text().split(), *_LATER_STOP_WORDS]
    (tmp_path / "stopwords/english").write_text("\n".join(sorted(words)))
    assert len(words) == 198
    assert prepare(["stopwords"], tmp_path) == {"stopwords": True}
    assert len(stop_words()) == 179
