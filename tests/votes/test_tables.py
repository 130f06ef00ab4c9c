"""Tables: several files as one, vote stores, and votes where arrays of counts are taken."""

import json
import random

import numpy as np
import polars as pl
import pytest

from btdagg import InputError, calibrate, read_labels, read_votes
from btdagg.datasets import simulate
from btdagg.votes import read_table
from refusals import refused

SAMPLE = simulate("rb2-math", 60, 8, seed=4)
LONG = pl.DataFrame(SAMPLE.vote_columns())
GOLD = SAMPLE.label_columns()


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def counted(votes, n_votes=None):
    ids, counts = votes.counts(n_votes)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


@pytest.fixture
def parts(tmp_path):
    """A folder of Parquet files: the votes in three parts, in an order that is not of the items."""
    folder = tmp_path / "votes"
    (folder / "late").mkdir(parents=True)
    shuffled = LONG.sample(fraction=1, shuffle=True, seed=1)
    for name, start, rows in (("a", 0, 100), ("b", 100, 250), ("late/c", 350, None)):
        shuffled.slice(start, rows).write_parquet(folder / f"{name}.parquet")
    return folder, shuffled


# Several files


def test_a_folder_a_pattern_and_a_list_of_parquet_files_are_one_table(parts):
    folder, whole = parts
    files = [folder / "a.parquet", folder / "b.parquet", folder / "late" / "c.parquet"]
    read = read_votes(folder)
    assert read.source == str(folder)
    assert read.frame.equals(read_votes(whole).frame)
    for given in (files, tuple(map(str, files)), str(folder / "**" / "*.parquet")):
        assert counted(read_votes(given)) == counted(read_votes(whole))
    assert counted(read_votes(folder / "*.parquet")) == counted(read_votes(whole.head(350)))
    assert read_votes(files[::-1]).frame["item"][0] == whole["item"][350]


def test_errors_name_the_file_and_the_row_in_it(parts):
    folder, whole = parts
    bad = whole.slice(100, 250).with_columns(pl.col("vote").cast(pl.Int64))
    bad = bad.with_columns(vote=pl.when(pl.int_range(pl.len()) == 6).then(9).otherwise("vote"))
    whole.head(100).cast({"vote": pl.Int64}).write_parquet(folder / "a.parquet")
    bad.write_parquet(folder / "b.parquet")
    (folder / "late" / "c.parquet").unlink()
    with pytest.raises(InputError) as error:
        read_votes(folder)
    assert str(error.value).startswith(f"{folder / 'b.parquet'}, row 7, column vote: got 9, exp")
    row = {"item": ["x"], "vote": [1], "sample": [0]}
    pl.DataFrame(row).write_parquet(folder / "a.parquet")
    pl.DataFrame({**row, "vote": [0]}).write_parquet(folder / "b.parquet")
    with pytest.raises(InputError) as error:
        read_votes(folder)
    assert str(error.value) == (
        f"{folder / 'a.parquet'}, row 1 and {folder / 'b.parquet'}, row 1: both have item 'x', "
        "sample 0, with votes 1 and 0"
    )


def test_files_that_are_no_table_together_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read: a folder without \.parquet files$"):
        read_votes(tmp_path)
    LONG.write_parquet(tmp_path / "a.parquet")
    LONG.select("item").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=rf"^{tmp_path}: "):
        read_votes(tmp_path).counts()
    with pytest.raises(InputError, match="no such file"):
        read_votes([tmp_path / "a.parquet", tmp_path / "c.parquet"])
    with pytest.raises(InputError, match=r"c\*\.parquet: no such file"):
        read_votes(tmp_path / "c*.parquet")


def test_damage_that_shows_late_is_one_line(tmp_path):
    path = tmp_path / "v.parquet"
    LONG.write_parquet(path)
    content = bytearray(path.read_bytes())
    content[8:400] = bytes(392)
    write(path, bytes(content))
    with pytest.raises(InputError, match=r"v\.parquet: (cannot be read|not a Parquet file)"):
        read_votes(path)


# What stays in the files


def test_votes_of_parquet_files_are_tallied_as_those_in_memory(parts):
    folder, whole = parts
    votes, in_memory = read_votes(folder), read_votes(whole)
    assert counted(votes) == counted(in_memory)
    assert list(counted(votes)) == list(dict.fromkeys(whole["item"].to_list()))
    item = whole["item"][0]
    assert counted(votes.filter({"item": item})) == counted(in_memory.filter({"item": item}))
    assert votes.n_missing == 0
    assert votes.height == whole.height
    for n_votes in (1, 3, 5):
        assert counted(votes, n_votes) == counted(in_memory, n_votes)
    for table in (votes, in_memory):
        with refused("n_votes", got=99, expected="at most 8"):
            table.counts(99)


# Repeated samples


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("judges", [["m"], ["m", "m2", None]])
def test_what_is_summed_while_reading_is_what_the_rows_say(tmp_path, sampled, judges):
    rng = np.random.default_rng(2)
    keys = [(i, j, k) for i in range(40) for j in judges for k in range(rng.integers(1, 5))]
    items, who, samples = zip(*[keys[k] for k in rng.permutation(len(keys))], strict=True)
    frame = pl.DataFrame({"item": items, "judge": pl.Series(who, dtype=pl.String)})
    frame = frame.with_columns(
        pl.format("q{}", "item").alias("item"),
        vote=pl.Series([(-1, 0, 1, None)[k] for k in rng.integers(0, 4, len(keys))], dtype=pl.Int8),
    )
    if sampled:
        frame = frame.with_columns(sample=pl.Series(samples))
    frame.write_parquet(tmp_path / "v.parquet")
    in_file, in_memory = read_votes(tmp_path / "v.parquet"), read_votes(frame)
    asked = [None, {"judge": "m"}, {"judge": ["", "m"], "item": ["q3", "q7"]}]
    for where in asked[: 1 + len(judges)]:
        if where is not None and set(where["judge"]) > {"m"} and None not in judges:
            continue
        a, b = (votes if where is None else votes.filter(where) for votes in (in_file, in_memory))
        assert a.tally().equals(b.tally())
        assert (a.height, a.n_missing) == (b.height, b.n_missing)
        for column in ("item", "judge"):
            assert a.values(column).equals(b.values(column))
    (tmp_path / "v.parquet").unlink()  # none of this reads it again
    assert in_file.tally().height == 40
    assert in_file.filter({"judge": "m"}).tally().height == 40


def test_repeats_are_found_whatever_the_numbers_of_samples(tmp_path):
    """Samples from 63 on share bits with others, and are looked at closely."""
    rng = np.random.default_rng(2)
    for samples in (range(5), range(60, 70), [0, 63, 126, 2**52], [62, 125]):
        n = len(samples)
        once = pl.DataFrame(
            {
                "item": np.repeat(["x", "y", "z"], n),
                "vote": rng.integers(-1, 2, 3 * n),
                "sample": [*samples] * 3,
            }
        )
        path = tmp_path / "v.parquet"
        once.write_parquet(path)
        assert counted(read_votes(path)) == counted(read_votes(once.drop("sample")))
        again = pl.concat([once, once[[0, 2 * n, 0]]])
        again.write_parquet(path)
        votes = read_votes(path)
        assert counted(votes) == counted(read_votes(again)) == counted(read_votes(once))
        assert votes.frame.height == 3 * n
        other = once[[n]].with_columns(vote=pl.lit(1 if once["vote"][n] < 1 else 0, pl.Int64))
        pl.concat([once, other]).write_parquet(path)
        with pytest.raises(InputError, match=rf"rows {n + 1} and {3 * n + 1}: both have item 'y'"):
            read_votes(path)


def test_what_tells_samples_apart_is_in_the_check(tmp_path):
    columns = {"item": ["x"] * 4, "vote": [1, 0, 1, -1], "sample": [0, 0, 1, 1]}
    path = tmp_path / "v.parquet"
    for more in ({"judge": ["g", "h"] * 2}, {"temperature": [0.0, None] * 2}):
        pl.DataFrame({**columns, **more}).write_parquet(path)
        assert counted(read_votes(path)) == {"x": [1, 1, 2]}
        same = {name: [values[0]] * 4 for name, values in more.items()}
        pl.DataFrame({**columns, **same}).write_parquet(path)
        with pytest.raises(InputError, match="rows 1 and 2: both have item 'x'"):
            read_votes(path)


# JSON lines


REGULAR = [
    '{"item":"x","vote":1,"c":0.5,"b":true}',
    '{"item":"y","vote":0,"c":null,"b":false}',
    '{"item":"z: \\"q\\" é","vote":-1,"c":2.0,"b":true}',
]
ODD = {
    "a number among texts": '{"item":7,"vote":1}',
    "text among numbers": '{"item":"a","vote":"B"}',
    "a key of its own": '{"item":"a","vote":1,"other":"p"}',
    "values in values": '{"item":"a","vote":1,"c":{"d":1}}',
    "a wide number": '{"item":"a","vote":1,"c":9007199254740993}',
    "half of a pair": '{"item":"a","vote":1,"note":"\\ud800"}',
    "not a number": '{"item":"a","vote":1,"c":NaN}',
    "a key twice": '{"item":"a","item":"b","vote":1}',
    "blanks before a colon": '{"item" :"a","vote":1}',
    "a key that is escaped": '{"\\u0069tem":"a","vote":1}',
}


def by_python(content):
    return read_table([json.loads(line) for line in content.split("\n")], []).frame


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("kind", [None, *ODD])
def test_json_lines_are_read_as_python_reads_them(tmp_path, kind, separators):
    """The odd line is in any place, even past the first that are looked at."""
    for place in (0, 1, 3):
        lines = REGULAR * (1 if place < 3 else 500)
        lines = [json.dumps(json.loads(line), separators=separators) for line in lines]
        if kind is not None:
            lines.insert(len(lines) if place == 3 else place, ODD[kind])
        path = write(tmp_path / "v.jsonl", "\n".join(lines) + "\n")
        assert read_table(path, []).frame.equals(by_python("\n".join(lines)))


def test_random_json_lines_are_read_as_python_reads_them(tmp_path):
    rng = random.Random(3)
    odd = ["", 'a":b', '":', "{", "\n{", "true", "null", "a\\b", "\x00"]
    for trial in range(150):
        texts = ["x", "é", "😀", "1", "y z"] + odd * (trial % 2)
        kinds = {
            name: rng.choice([texts, texts, [0, 1, -1], [0.5, 1.0, 3.25], [True, False]])
            for name in ("item", "k", "c:" if trial % 5 == 0 else "c", "vote")[: rng.randint(1, 4)]
        }
        rows = [
            {name: rng.choice(values) for name, values in kinds.items() if rng.random() < 0.9}
            for _ in range(rng.randint(1, 6))
        ]
        if rng.random() < 0.2:
            rows[-1]["item"] = rng.choice([*texts, 5, 0.25, None, True])
        content = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        path = write(tmp_path / "v.jsonl", content)
        assert read_table(path, []).frame.equals(by_python(content)), content


# Votes and labels where arrays are taken


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_labels_of_the_votes_task_are_taken():
    twice = pl.concat(
        pl.DataFrame(GOLD).with_columns(task=pl.lit(task), label=sign * pl.col("label"))
        for task, sign in (("math", 1), ("other", -1))
    )
    votes = read_votes(LONG.with_columns(task=pl.lit("math")))
    model = calibrate(votes, read_labels(twice)).model
    assert model == calibrate(SAMPLE.counts, SAMPLE.labels).model
    with pytest.raises(InputError, match="in several tasks"):
        calibrate(read_votes(LONG), read_labels(twice))


def test_what_has_no_order_in_common_is_refused():
    votes, labels = read_votes(LONG), read_labels(GOLD)
    with pytest.raises(InputError, match=r"^labels are a table but counts is an array"):
        calibrate(SAMPLE.counts, labels)
    with refused("weights", got="ndarray"):
        calibrate(votes, labels, weights=np.ones(60))
    wide = dict(zip(("minus", "tie", "plus"), SAMPLE.counts.T, strict=True))
    counts = read_votes({"item": SAMPLE.items, **wide})
    with pytest.raises(InputError, match=r"n_votes needs single votes, but these are counts$"):
        counts.counts(3)
