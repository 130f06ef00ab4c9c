"""The public data sets: WMT23 from its archive, RewardBench 2 from rows of its public schema."""

import csv
import gzip
import http.server
import io
import json
import tarfile
import threading
from collections import Counter, defaultdict
from contextlib import contextmanager
from functools import partial
from hashlib import sha256

import huggingface_hub
import numpy as np
import polars as pl
import pooch
import pytest

from btdagg import InputError, majority_vote
from btdagg.paper import load_rewardbench2, load_wmt23, wmt23

# WMT23: the real archive


ZHEN, ENDE = wmt23._SIDE_BY_SIDE["zh-en"], wmt23._SIDE_BY_SIDE["en-de"]


@pytest.fixture(scope="module")
def archive(shared):
    return shared / "data/wmt23" / f"{ZHEN}.tar.gz"


@pytest.fixture(scope="module")
def german(shared):
    return shared / "data/wmt23" / f"{ENDE}.tar.gz"


@pytest.fixture(scope="module")
def everything(archive):
    return load_wmt23(archive, drop_identical=False)


@pytest.mark.parametrize("code", ["zhen", "ende"])
def test_wmt23_equals_the_tidy_table_row_by_row(shared, archive, german, code):
    tidy = pl.read_csv(shared / f"data/wmt23/ratings_{code}.csv")
    ours = load_wmt23({"zhen": archive, "ende": german}[code], drop_identical=False).frame
    assert ours.columns == tidy.columns
    assert ours.schema["vote"] == pl.Int8
    assert ours.cast({"vote": pl.Int64, "identical": pl.Int64}).equals(tidy)
    distinct = ours.filter(~pl.col("identical"))["item"].n_unique()
    assert distinct == {"zhen": 1835, "ende": 510}[code]


# The direct ratings are not among the public votes of the tests. Who has them puts them there.
@pytest.mark.parametrize(
    ("pair", "wanted"), [("zh-en", [760, 336, 739]), ("en-de", [175, 121, 214])]
)
def test_wmt23_majorities_of_six_are_the_gold_of_the_paper(shared, pair, wanted):
    folder = shared / "data/wmt23"
    if not (folder / f"{wmt23._DIRECT[pair]}.tar.gz").exists():
        pytest.skip("the archive of direct ratings is not here")
    ratings = load_wmt23(folder / f"{wmt23._SIDE_BY_SIDE[pair]}.tar.gz", ratings=6)
    gold = majority_vote(ratings.counts())
    assert [int((gold == label).sum()) for label in (1, 0, -1)] == wanted


def test_wmt23_scores_average_to_those_that_the_archive_carries(archive, everything):
    ours = defaultdict(list)
    for row in everything.frame.iter_rows(named=True):
        for side in "ab":
            ours[row["segment"], row[f"system_{side}"]].append(row[f"mqm_{side}"])
    theirs = {}
    with tarfile.open(archive) as members:
        lines = io.TextIOWrapper(members.extractfile(ZHEN), encoding="utf-8", newline="\n")
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            segment = json.loads(row["metadata"]).get("segment")
            if segment:
                theirs[int(row["globalSegId"]), row["system"]] = segment["metrics"]["MQM"]
    assert len(theirs) == 3770
    assert theirs.keys() == ours.keys()
    for key, mean in theirs.items():
        assert sum(ours[key]) / 3 == pytest.approx(mean, abs=1e-12)


def test_wmt23_archive_is_the_one_whose_checksum_is_known(german, cache, serving):
    with serving({german.name: german.read_bytes()}):
        ratings = load_wmt23(pair="en-de", download=True)
    assert len(ratings.items) == 510
    assert ratings.source == str(cache / "btdagg" / german.name)


# WMT23: archives of a few rows

ROW = {
    "system": "S", "doc": "d", "docSegId": "1", "globalSegId": "1", "rater": "r1",
    "source": "原文", "target": "text", "category": "No-error", "severity": "No-error",
}  # fmt: skip


def error(system, side=None, *, time=None, **values):
    """Row of an archive; the systems A, B and C, D are pairs, one worked on after the other."""
    session = 0 if system in "AB" else 1000
    metadata = {"timestamp": session + 5 if time is None else time}
    if side is not None:
        metadata["side"] = side
    return {**ROW, "system": system, "target": f"of {system}", **values, "metadata": metadata}


def major(system, side, **values):
    return error(system, side, **{"category": "Fluency/Grammar", "severity": "Major", **values})


ERRORS = [major("A", 1), major("B", 2), error("A", time=3), error("B", time=9)]


def packed(rows, member=ZHEN, drop=()):
    """Bytes of an archive."""
    titles = [title for title in [*ROW, "metadata"] if title not in drop]
    lines = ["\t".join([*titles, "# Documentation: https://example.org"])]
    for row in rows:
        cells = {**row, "metadata": row["metadata"]}
        if isinstance(row["metadata"], dict):
            cells["metadata"] = json.dumps(row["metadata"])
        lines.append("\t".join(cells[title] for title in titles))
    content = ("\n".join(lines) + "\n").encode()
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as members:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        members.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.fixture
def load(tmp_path):
    def load(rows, **arguments):
        path = tmp_path / "wmt.tar.gz"
        path.write_bytes(rows if isinstance(rows, bytes) else packed(rows))
        return load_wmt23(path, **arguments)

    return load


@pytest.mark.parametrize(
    ("severity", "category", "weight"),
    [
        ("Major", "Accuracy/Mistranslation", 5),
        ("Minor", "Fluency/Punctuation", 0.1),
        ("Major", "Non-translation!", 25),
        ("Major", "Source issue", 0),
        ("HOTW-test", "Found", 0),
        ("No-error", "No-error", 0),
    ],
)
def test_wmt23_weights(load, severity, category, weight):
    row = error("A", 1, severity=severity, category=category)
    frame = load([*ERRORS, row]).frame
    assert frame.select("mqm_a", "mqm_b", "vote").rows() == [(5 + weight, 5, -1 if weight else 0)]


def test_wmt23_sums_tie_exactly(load):
    points = [error("A", 1, severity="Minor", category="Fluency/Punctuation")] * 10
    minor = error("B", 2, severity="Minor", category="Style/Awkward")
    assert load([*ERRORS, *points, minor]).frame["vote"].to_list() == [0]


def test_wmt23_pairs_systems_by_who_was_worked_on_together(load):
    rows = [
        *ERRORS,
        major("D", 1), major("C", 2), major("C", 0),  # an error in the source counts too
        error("A", rater="r2", time=2005), error("B", rater="r2", time=2005),
        error("C", rater="r2"), error("D", rater="r2"),
    ]  # fmt: skip
    ratings = load(rows)
    assert ratings.frame.select("item", "rater", "vote").rows() == [
        ("zhen-001-A--B", "r1", 0),
        ("zhen-001-A--B", "r2", 0),
        ("zhen-001-D--C", "r1", 1),
        ("zhen-001-D--C", "r2", 0),
    ]
    assert ratings.votes.tolist() == [[0, 0], [1, 0]]
    assert ratings.frame.row(2, named=True) == {
        "item": "zhen-001-D--C", "segment": 1, "doc": "d", "system_a": "D", "system_b": "C",
        "rater": "r1", "mqm_a": 5.0, "mqm_b": 10.0, "vote": 1, "identical": False,
    }  # fmt: skip


def test_wmt23_drops_pairs_of_the_same_text_on_request(load):
    texts = {"A": 'a "quoted text', "B": 'a <v>"quoted</v> text '}
    rows = [
        *ERRORS,
        *(error(row["system"], globalSegId="2", target=texts[row["system"]]) for row in ERRORS),
    ]
    assert load(rows).items.tolist() == ["zhen-001-A--B"]
    everything = load(rows, drop_identical=False).frame
    assert everything.select("segment", "identical").rows() == [(1, False), (2, True)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ERRORS, error("C")], "system C is in 0 pairs side by side, expected one"),
        (packed(ERRORS, member="other.tsv"),
         f"no {ZHEN} or {ENDE} in the archive; it has other.tsv"),
        (gzip.compress(b"rubbish"), "not a .tar.gz archive, or a damaged one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "rows",  # archives hold the time
)  # fmt: skip
def test_wmt23_refuses_a_bad_archive(load, tmp_path, rows, message):
    with pytest.raises(InputError) as caught:
        load(rows)
    assert str(caught.value) == f"{tmp_path / 'wmt.tar.gz'}: {message}"


# WMT23: three further ratings, of one translation at a time

DIRECT = [
    # Marked by other people, in an archive of its own that may number segments otherwise.
    error("A", None, rater=rater, globalSegId="77", **values)
    for rater, values in (
        ("r1", {"severity": "Minor", "category": "Style/Awkward"}), ("r2", {}), ("r3", {}),
    )
] + [
    error("B", None, rater=rater, globalSegId="77", severity=severity, category="Fluency/Grammar")
    for rater, severity in (("r1", "Neutral"), ("r2", "Minor"), ("r3", "Major"))
]  # fmt: skip
GERMAN = [
    # GPT is beside two systems and has a name for each.
    row for a, b, time in (("GPT_with_refA", "refA", 0), ("ONLINE", "GPT_with_ONLINE", 1000))
    for rater in ("r1", "r2", "r3")
    for row in (
        major(a, 1, time=time, rater=rater, target=f"of {a[:3]}"),
        error(b, 2, time=time, rater=rater, target=f"of {b[:3]}"),
    )
]  # fmt: skip
GERMAN_DIRECT = [
    error(system, rater=rater, target=f" of {system[:3]}", severity=severity,
          category="Accuracy/Addition")
    for system, severity in (("GPT", "Minor"), ("refA", "Major"), ("ONLINE", "Minor"))
    for rater in ("r4", "r5", "r6")
]  # fmt: skip


@pytest.fixture
def load_six(tmp_path):
    def load(direct, rows=ERRORS, pair="zh-en", **arguments):
        path = tmp_path / "wmt.tar.gz"
        path.write_bytes(packed(rows, member=wmt23._SIDE_BY_SIDE[pair]))
        member = wmt23._DIRECT[pair]
        if direct is not None:
            content = direct if isinstance(direct, bytes) else packed(direct, member=member)
            (tmp_path / f"{member}.tar.gz").write_bytes(content)
        return load_wmt23(path, ratings=6, **arguments)

    return load


def test_wmt23_six_ratings_are_those_of_both_archives(load_six):
    ratings = load_six(DIRECT)
    assert ratings.frame.select("item", "segment", "rater", "mqm_a", "mqm_b", "vote").rows() == [
        ("zhen-001-A--B", 1, "direct-r1", 1, 0, -1),
        ("zhen-001-A--B", 1, "direct-r2", 0, 1, 1),
        ("zhen-001-A--B", 1, "direct-r3", 0, 5, 1),
        ("zhen-001-A--B", 1, "r1", 5, 5, 0),
    ]
    # Two of four votes: the gold label of the item is that of the majority.
    assert majority_vote(ratings.counts()).tolist() == [1]


def test_wmt23_a_system_with_two_partners_is_rated_directly_once(load_six):
    ratings = load_six(GERMAN_DIRECT, rows=GERMAN, pair="en-de")
    votes = {
        item: (frame["rater"].to_list(), frame["vote"].to_list())
        for (item,), frame in ratings.frame.group_by("item")
    }
    raters = [f"direct-r{k}" for k in (4, 5, 6)] + ["r1", "r2", "r3"]
    assert votes == {
        "ende-001-GPT_with_refA--refA": (raters, [1, 1, 1, -1, -1, -1]),
        "ende-001-ONLINE--GPT_with_ONLINE": (raters, [0, 0, 0, -1, -1, -1]),
    }


@pytest.mark.parametrize(
    ("direct", "n_raters"),
    [(DIRECT[:-1], 2), ([{**row, "docSegId": "9"} for row in DIRECT], 0), (DIRECT[:3], 0)],
    ids=["two raters", "other segment", "no system"],
)
def test_wmt23_refuses_direct_ratings_that_do_not_fit(load_six, direct, n_raters):
    with pytest.raises(InputError, match=f"item zhen-001-A--B has {n_raters} raters, expected 3"):
        load_six(direct)


# WMT23: downloading, from a server of our own


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache folder, empty."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(pooch, "os_cache", lambda project: folder / project)
    return folder


@pytest.fixture
def serving(tmp_path, monkeypatch):
    """Context in which the repository's address serves some files."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            return super().translate_path(path.rpartition("/")[2])

        def log_message(self, *_):
            pass

    @contextmanager
    def serving(files):
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        handler = partial(Handler, directory=tmp_path)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            monkeypatch.setattr(wmt23, "_URL", f"http://127.0.0.1:{server.server_port}")
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()

    return serving


def test_wmt23_is_downloaded_once(cache, serving, monkeypatch):
    content = packed(ERRORS)
    monkeypatch.setitem(wmt23._SHA256, ZHEN, sha256(content).hexdigest())
    with serving({f"{ZHEN}.tar.gz": content}):
        first = load_wmt23(download=True)
    again = load_wmt23(download=True)  # the server is gone
    assert again.frame.equals(first.frame)
    assert first.source == str(cache / "btdagg" / f"{ZHEN}.tar.gz")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({f"{ZHEN}.tar.gz": packed(ERRORS)}, "SHA256 hash of downloaded file"),
        ({}, "404 Client Error"),
    ],
)
def test_wmt23_keeps_nothing_of_a_failed_download(cache, serving, files, message):
    message = f"cannot be downloaded: {message}"
    with serving(files), pytest.raises(InputError, match=message):
        load_wmt23(download=True)
    assert not [file for file in cache.rglob("*") if file.is_file()]


# RewardBench 2


def prompt(name, number, n_chosen=1, n_rejected=3, **values):
    """Row of the public schema; a response says whose it is, so that its label can be told."""
    chosen = [f"{name} {number}: good {k}" for k in range(n_chosen)]
    rejected = [f"{name} {number}: bad {k}" for k in range(n_rejected)]
    row = {
        "id": str(number),
        "prompt": f"{name} {number}",
        "chosen": chosen,
        "rejected": rejected,
        "num_correct": n_chosen,
        "num_incorrect": n_rejected,
        "total_completions": n_chosen + n_rejected,
        "models": ["m"] * (n_chosen + n_rejected),
        "subset": name,
        "additional_metadata": {"category": None, "correct": None, "index": None},
    }
    return row | values


PROMPTS = [
    *(prompt("Math", number) for number in range(300)),
    *(prompt("Precise IF", number) for number in range(11)),
    *(prompt("Ties", f"tied:{number}", 9, 6) for number in range(30)),
]
N_PAIRS = {"math": 1800, "precise-if": 66, "ties": 30 * 105}


def as_parquet(rows, path):
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    return path


def as_jsonl(rows, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return as_parquet(PROMPTS, tmp_path_factory.mktemp("rb2") / "test.parquet")


@pytest.fixture(scope="module")
def all_pairs(source):
    return load_rewardbench2(source, n_per_task=None)


def counts_by_task(pairs):
    return {task: len(frame) for (task,), frame in pairs.frame.group_by("task")}


def label_counts(frame):
    return Counter(frame["label"].to_list())


def test_rb2_pairs_are_all_pairs_of_the_responses_of_a_prompt(all_pairs):
    assert counts_by_task(all_pairs) == N_PAIRS
    assert all_pairs.columns == [
        "item", "task", "group", "prompt", "response_a", "response_b", "label"
    ]  # fmt: skip
    assert all_pairs.frame.schema["label"] == pl.Int8
    assert all_pairs.frame["item"].is_unique().all()
    seen = set()
    for row in all_pairs.frame.iter_rows(named=True):
        a, b = row["response_a"], row["response_b"]
        assert a.startswith(f"{row['prompt']}: ")
        assert b.startswith(f"{row['prompt']}: ")
        assert row["label"] == ("good" in a) - ("good" in b)
        seen.add(frozenset([a, b]))
    assert len(seen) == len(all_pairs.frame)


@pytest.mark.parametrize("n_per_task", [None, 1000, 101, 1])
def test_rb2_sides_are_even(source, n_per_task):
    pairs = load_rewardbench2(source, n_per_task=n_per_task, seed=4)
    for (_,), frame in pairs.frame.group_by("task"):
        counts = label_counts(frame)
        assert abs(counts[1] - counts[-1]) <= 1
        ties = frame.filter(pl.col("label") == 0)
        first_is_a = (ties["response_a"] < ties["response_b"]).sum()
        assert abs(2 * first_is_a - ties.height) <= 1


def test_rb2_sample_has_the_size_of_the_paper_and_its_shares(source, all_pairs):
    pairs = load_rewardbench2(source)
    assert counts_by_task(pairs) == {"math": 1000, "precise-if": 66, "ties": 1000}
    assert pairs.frame["item"].is_unique().all()
    assert set(pairs.frame["item"]) < set(all_pairs.frame["item"])
    for task in ("math", "ties"):
        drawn, whole = (
            (table.frame.filter(pl.col("task") == task)["label"] == 0).mean()
            for table in (pairs, all_pairs)
        )
        assert drawn == pytest.approx(whole, abs=0.05)  # more than three standard errors


@pytest.mark.soak
def test_rb2_every_pair_is_as_likely_to_be_drawn(tmp_path):
    source = as_jsonl([prompt("Math", 0), prompt("Math", 1)], tmp_path / "test.jsonl")
    drawn = Counter()
    for seed in range(300):
        drawn.update(load_rewardbench2(source, n_per_task=4, seed=seed).frame["item"].to_list())
    assert len(drawn) == 12
    # 100 each, give or take four standard deviations.
    assert max(abs(count - 100) for count in drawn.values()) < 4 * np.sqrt(300 * 2 / 9)


def test_rb2_tasks_do_not_depend_on_each_other(source):
    some = load_rewardbench2(source, n_per_task=40, tasks=["Precise IF", "ties"])
    every = load_rewardbench2(source, n_per_task=40)
    assert some.frame.equals(every.frame.filter(pl.col("task") != "math"))


def test_rb2_jsonl_and_folders_give_the_same_pairs(source, tmp_path):
    wanted = load_rewardbench2(source).frame
    assert load_rewardbench2(as_jsonl(PROMPTS, tmp_path / "any.jsonl")).frame.equals(wanted)
    folder = tmp_path / "rb2"
    (folder / "data").mkdir(parents=True)
    as_parquet(PROMPTS[:100], folder / "data" / "test-00000-of-00002.parquet")
    as_parquet(PROMPTS[100:], folder / "data" / "test-00001-of-00002.parquet")
    as_parquet([prompt("Math", 999)], folder / "data" / "train-00000-of-00001.parquet")
    (folder / "README.md").write_text("test")
    assert load_rewardbench2(folder).frame.equals(wanted)
    assert load_rewardbench2(str(folder), split="train").frame.height == 6


def test_rb2_writes_what_the_judge_sees(tmp_path):
    awkward = 'two\nlines, "quotes", \t and \u2028 多 \\ 😀'
    source = as_jsonl([prompt("Math", 7, prompt=awkward, rejected=[awkward, "", " "])],
                      tmp_path / "test.jsonl")  # fmt: skip
    pairs = load_rewardbench2(source)
    target = tmp_path / "pairs.jsonl"
    target.write_text("old")
    pairs.write_jsonl(target)
    rows = [json.loads(line) for line in target.read_text("utf-8").split("\n")[:-1]]
    columns = ["item", "prompt", "response_a", "response_b"]
    assert rows == pairs.frame.select(columns).to_dicts()
    assert [list(row) for row in rows] == [columns] * 6
    assert rows[0]["prompt"] == awkward
    assert sorted(file.name for file in tmp_path.iterdir()) == ["pairs.jsonl", "test.jsonl"]


def test_rb2_refuses_a_bad_source(tmp_path):
    twice = as_jsonl([prompt("Math", 1)] * 2, tmp_path / "twice.jsonl")
    with pytest.raises(InputError, match="rows 1 and 2: both have task 'math', id '1'"):
        load_rewardbench2(twice)
    with pytest.raises(InputError, match=r"no .parquet or .jsonl file of split 'test'"):
        load_rewardbench2(tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 rubbish")
    short = as_jsonl([{"id": "1", "prompt": "?"}], tmp_path / "short.jsonl")
    for source in (tmp_path / "broken.parquet", short):
        with pytest.raises(InputError, match="does not have the form of allenai/reward-bench-2"):
            load_rewardbench2(source)


# RewardBench 2: the hub


def test_rb2_comes_from_the_hub_without_a_source(tmp_path, source, monkeypatch):
    """The library is asked for the data set's files of the split; what it keeps is read."""
    asked = {}

    def snapshot_download(repo_id, **arguments):
        asked.update(arguments, repo_id=repo_id)
        (tmp_path / "data").mkdir()
        as_parquet(PROMPTS, tmp_path / "data" / "test-00000-of-00001.parquet")
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert load_rewardbench2().frame.equals(load_rewardbench2(source).frame)
    assert asked == {
        "repo_id": "allenai/reward-bench-2",
        "repo_type": "dataset",
        "allow_patterns": ["data/test-*", "data/test.*"],
    }
