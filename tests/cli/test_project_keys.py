"""Keys of the project file: one table, by which the file, --set, schema and documentation agree."""

import json
import re
import shlex
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import btdagg
from btdagg._util.errors import quoted
from btdagg.project import COLUMNS, FILE, KEYS, OPEN, is_column
from pages import ROOT

TEXTS = ("June, second half", "x = y", "日本, neu", "say \"yes\", a='b'", "a=b,item=c", "+", '""')
# Where a text stands in the file: the tables, or what a table of meanings has.
PATHS = [
    (*table, name, *word)
    for name, key in KEYS.items()
    for table, kind in (((), key.above), (("votes",), key.inside))
    for word in ((), ("A = B, or",))
    if kind in (("mapping", "scale") if word else ("text", "names", "column", "scale"))
    or (kind == "column or table" and not word)
]


def nested(path, value):
    return {path[0]: nested(path[1:], value)} if path else value


def typed(*path):
    """Return a key as it is typed, with all in quotes that may need them."""
    *names, last = path
    is_word = len(path) > 1 and path[-2] in ("words", "orders", "constants", "criteria", "judges")
    return ".".join([*names, quoted(last) if is_word or path[-2:-1] == ("scale",) else last])


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_texts_in_quotes_come_back_as_they_were(word, meaning, title):
    said = {
        "words": {word: meaning},
        "constants": {word: title},
        "votes": {"scale": {word: meaning}, "file": title},
        "title": title,
        "a": meaning,
    }
    keys = [
        f"words.{quoted(word)}={quoted(meaning)}",
        f"constants.{quoted(word)}={quoted(title)}",
        f"votes.scale.{quoted(word)}={quoted(meaning)}",
        f"votes.file={quoted(title)}",
        f"title={quoted(title)}",
        f"a={quoted(meaning)}",
    ]
    assert btdagg.Project().with_keys(keys).keys == said
    assert btdagg.Project().with_keys([",".join(keys)]).keys == said
    assert btdagg.Project().with_keys([", ".join(keys[:3])]).keys["words"] == {word: meaning}


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_every_key_takes_the_same_texts_from_the_file_and_typed(tmp_path, path):
    for text in TEXTS:
        *table, name = path
        header = "".join(f"[{'.'.join(table)}]\n" * bool(table))
        (tmp_path / FILE).write_text(
            f"{header}{json.dumps(name)} = {json.dumps(text, ensure_ascii=False)}\n",
            encoding="utf-8",
        )
        project = btdagg.Project.load(tmp_path / FILE)
        assert project.keys == nested(path, text)
        assert btdagg.Project().with_keys([f"{typed(*path)}={quoted(text)}"]).keys == project.keys
        # Without quotes a comma before KEY= divides keys; a word may have an =, its meaning not.
        if not (text.startswith('"') or ",item=" in text or (len(path) > 1 and "=" in text)):
            assert btdagg.Project().with_keys([f"{typed(*path)}={text}"]).keys == project.keys


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("item=case,labels.label=gold", {"item": "case", "labels": {"label": "gold"}}),
        ("Item=case,VOTES.Item=id", {"item": "case", "votes": {"item": "id"}}),
        ("words.A won=A, words.B won=B", {"words": {"A won": "A", "B won": "B"}}),
        ('words."yes, A"=A', {"words": {"yes, A": "A"}}),
        ('words."A = B"=tie', {"words": {"A = B": "tie"}}),
        ("words.A=B=tie", {"words": {"A=B": "tie"}}),
        ("words.yes, A=A", {"words": {"yes, A": "A"}}),
        ('words."say "hi" now"=A', {"words": {'say "hi" now': "A"}}),
        ('words."say ""hi"", now"=A', {"words": {'say "hi", now': "A"}}),
        ("words.1=A", {"words": {"1": "A"}}),
        ("votes.words.a.b=A", {"votes": {"words": {"a.b": "A"}}}),
        ("votes.scale=1-5", {"votes": {"scale": "1-5"}}),
        ("votes.scale=0,0.5,1,a=x", {"votes": {"scale": "0,0.5,1"}, "a": "x"}),
        ("scale.engaging=1-3", {"scale": {"engaging": "1-3"}}),
        ("item=conversation+bot", {"item": "conversation+bot"}),
        ("a=Chat GPT, new", {"a": "Chat GPT, new"}),
        ("title=June, x=3", {"title": "June, x=3"}),
        ("title=In short, judges. And more", {"title": "In short, judges. And more"}),
        ('title="June,x=3",b=y', {"title": "June,x=3", "b": "y"}),
        ("constants.judge=a=b", {"constants": {"judge": "a=b"}}),
        ("full_margin=2", {"full_margin": 2.0}),
        ("judge.base_url=x/?a=b,judge.n=2", {"judge": {"base_url": "x/?a=b", "n": "2"}}),
    ],
)  # fmt: skip
def test_typed_keys_are_divided_by_commas_before_keys(text, keys):
    assert btdagg.Project().with_keys([text]).keys == keys


@pytest.mark.parametrize("word", ["B wins", "yes,so=far", 'say "hi"', "A = B"])
def test_advice_can_be_typed_as_it_is_printed(cli, folder, word):
    pl.DataFrame({"item": [1, 2], "vote": [word, "A"]}).write_csv("v.csv")
    err = cli("votes", "v.csv")[2]
    (option,) = re.findall(r"(--set .*=\.\.\.'): A, B, tie or missing", err)
    name, key = shlex.split(option.replace("...", "tie"))
    status, _, err = cli("votes", "v.csv", name, key)
    assert status == 0, err


def test_advice_on_a_key_of_several_columns_can_be_typed():
    columns = {"item": ["conversation", "bot"]}
    error = btdagg.InputError("write {advice}", advice={"columns": columns})
    assert error.in_options(lambda _: "--set ") == "write --set item=conversation+bot"


@pytest.mark.parametrize("text", ["", "item", "item=", "=x", " = ", "words.=A", ",item=x"])
def test_a_typed_key_has_a_name_and_a_value(text):
    with pytest.raises(btdagg.InputError, match="KEY=VALUE"):
        btdagg.Project().with_keys([text])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Item = 'x'", "line 1: Item: no such key, expected item"),
        ("TITEL = 'x'", "line 1: TITEL: no such key, expected title"),
        ("zzz = 1", "line 1: zzz: no such key, expected one of item, vote, score, "),
        ("file = 'x'", "line 1: file: no such key here; it stands in a table"),
        ("[votes]\nraters = 'mean'", "line 2: votes.raters: no such key here; it stands above the"),
        ("votes.file = 'x'\nvotes.itm = 3", "line 2: votes.itm: no such key, expected item"),
        ("votes = 'v.csv'", "votes is 'v.csv', expected a table: [votes]"),
        ("[[votes]]", "votes is [{}], expected a table: [votes]"),
        ("judge = 5", "judge is 5, expected a name, or a table: [judge]"),
        ("item = 5", "item is 5, expected a name, or a list of names"),
        ("item = []", "item is [], expected a name, or a list of names"),
        ("item = ''", "item is '', expected a name, or a list of names"),
        ("words = {draw = true}", "words is {'draw': True}, expected a table, such as words"),
        ("scale = {a = 5}", "scale is {'a': 5}, expected a text, such as \"1-5\", or one for each"),
        ("full_margin = '2'", "full_margin is '2', expected a number"),
        ("full_margin = true", "full_margin is True, expected a number"),
        ("title = ['a']", "title is ['a'], expected a text"),
        ("panel = 3", "panel is 3, expected a text"),
        ("raters = 'all'", "raters is 'all', expected one of mean, majority, drop"),
        ("item = 'x'\nitem = 'y'", "Cannot overwrite a value"),
    ],
)  # fmt: skip
def test_wrong_keys_say_what_was_wanted(folder, line, message):
    Path(FILE).write_text(line)
    with pytest.raises(btdagg.InputError, match=re.escape(message)):
        btdagg.Project.load()


def test_numbers_are_words_and_meanings():
    assert btdagg.Project({"words": {"1": "A", "good": 3}}).how()["words"] == {"1": "A", "good": 3}


def test_the_schema_of_a_project_has_its_keys():
    def described(kind):
        if isinstance(kind, tuple):
            return {"enum": [*kind, OPEN]}
        if kind == "column or table":
            return {"anyOf": [{"$ref": "#/$defs/column"}, {"type": "object"}]}
        return {"$ref": f"#/$defs/{kind}"}

    def plain(properties):
        return {
            name: {word: value for word, value in part.items() if word != "description"}
            for name, part in properties.items()
        }

    file = ROOT / "docs/schemas/project.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    table = schema["$defs"]["table"]
    above = {name: described(key.above) for name, key in KEYS.items() if key.above}
    inside = {name: described(key.inside) for name, key in KEYS.items() if key.inside}
    assert plain(schema["properties"]) == above
    assert plain(table["properties"]) == inside
    for part in (schema, table):
        assert not part["additionalProperties"]
        (pattern,) = part["patternProperties"]
        for name in ("4", "-1", "0.5", "p_3", "gsa_4", "usc", "p_", "4x", "gsa_", "x"):
            assert is_column(name) == (re.search(pattern, name) is not None), name


def test_the_tables_of_the_documentation_have_the_keys_of_a_project():
    text = (ROOT / "docs/project.md").read_text(encoding="utf-8")
    _, *tables = text.partition("\n## Keys\n")[2].split("\n| key | meaning |\n")
    rows = [
        dict(re.findall(r"^\| (`.*) \| (.*) \|$", table.partition("\n\n")[0], re.MULTILINE))
        for table in tables
    ]
    above, inside = ({*re.findall("`(.*?)`", " ".join(table))} for table in rows)
    settings = {name for name, key in KEYS.items() if key.above not in (None, key.inside, "table")}
    assert above == settings - {"judge"}
    of_tables = {name for name, key in KEYS.items() if key.inside}
    assert of_tables - {*COLUMNS} <= inside <= of_tables
    for name, meaning in rows[0].items():
        choices = KEYS[name.partition("`,")[0].strip("`")].above
        assert isinstance(choices, str) or {*choices} <= {*re.findall("`(.*?)`", meaning)}, name
