"""Templates: what is sent, what is not, and every message about one's own."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btdagg import InputError
from btdagg.judge import TEMPLATES, Pair, PromptTemplate, get_template, read_pairs
from btdagg.judge.answers import AnswerFormat
from refusals import refused

OF_PAIRS = [name for name in TEMPLATES if TEMPLATES[name].answer.grades is None]
LANGUAGES = {"source_language": "English", "target_language": "German"}
PAIR = Pair("q1", "text of a", "text of b", prompt="the prompt", fields=LANGUAGES)
PLAIN = PromptTemplate("plain", "{prompt}: {first} or {second}? {answer}")


def sent(template, pair=PAIR, order="AB"):
    return "\n".join(message["content"] for message in template.render(pair, order))


@pytest.mark.parametrize("name", OF_PAIRS)
def test_a_template_shows_everything_once(name):
    for order in ("AB", "BA"):
        text = sent(TEMPLATES[name], order=order)
        assert text.count("text of a") == text.count("text of b") == 1
        assert text.count("the prompt") == 1
        assert (text.index("text of a") < text.index("text of b")) == (order == "AB")
        form = TEMPLATES[name].asking(kind="json").answer.response_format["json_schema"]["schema"]
        words = form["properties"].get("verdict", {"enum": []})["enum"]
        assert all(f"[[{word}]]" in text for word in words)
        assert words or "<scores>X, Y</scores>" in text
        assert "{" not in text
        assert "}" not in text
        assert "q1" not in text


@pytest.mark.parametrize("name", OF_PAIRS)
def test_nothing_tells_which_response_is_a(name):
    exchanged = Pair("q1", PAIR.b, PAIR.a, prompt=PAIR.prompt, fields=PAIR.fields)
    template = TEMPLATES[name]
    assert template.render(PAIR, "BA") == template.render(exchanged, "AB")


@pytest.mark.parametrize("name", OF_PAIRS)
def test_without_ties_none_is_offered(name):
    template = TEMPLATES[name].asking(allow_tie=False)
    text = sent(template)
    assert not any(tie in text for tie in ("[[TIE]]", "A=B", "get the same grade"))
    assert "the verdict is a tie" not in text
    assert "Call it a tie" not in text
    assert template.asking(allow_tie=True) == TEMPLATES[name]


def test_forms_of_the_answer():
    line = sent(PLAIN.asking(kind="line"))
    assert "one line that reads Verdict: A, Verdict: B or Verdict: TIE." in line
    json = PLAIN.asking(kind="json", confidence=True)
    assert '"A", "B" or "TIE"' in sent(json)
    assert '"confidence"' in sent(json)
    schema = json.answer.response_format["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["verdict"]["enum"] == ["A", "B", "TIE"]
    assert schema["schema"]["required"] == ["reasoning", "verdict", "confidence"]
    assert PLAIN.answer.response_format is None
    assert "Confidence: N" in sent(PLAIN.asking(confidence=True))


def test_the_digest_is_of_everything_that_is_sent_but_the_pair():
    variants = [
        template.asking(kind=kind, allow_tie=ties, confidence=confidence)
        for template, kind, ties, confidence in product(
            map(TEMPLATES.get, OF_PAIRS), ("tag", "line", "json"), (True, False), (True, False)
        )
    ]
    assert len({template.digest for template in variants}) == len(variants) == 84
    assert all(re.fullmatch("[0-9a-f]{64}", template.digest) for template in variants)
    renamed = PromptTemplate("another name", PLAIN.user)
    assert renamed.digest == PLAIN.digest
    given_values = TEMPLATES["translation"].with_values(LANGUAGES)
    assert given_values.digest != TEMPLATES["translation"].digest


def test_digests_do_not_change_from_version_to_version():
    # Votes are stored under them: a change of a template's text has to be meant.
    assert PLAIN.digest == "492879cc9fdff1dac1a6db4d894b36bd025d78d846a8981eddc5497af77ea954"


@given(st.text(), st.text(), st.text())
def test_texts_of_a_pair_are_never_expanded(a, b, prompt):
    pair = Pair("q1", a, b, prompt=prompt, fields=LANGUAGES)
    (message,) = PLAIN.render(pair, "BA")
    assert message["content"] == f"{prompt}: {b} or {a}? {PLAIN.answer.instructions}"


def test_fields_of_the_pairs_and_values_for_all():
    template = PromptTemplate("t", "{Domain} {tone}: {first}{second}").with_values(
        {"tone": "{dry}"}
    )
    pair = Pair("q1", "x", "y", fields={"domain": "law"})
    assert sent(template, pair) == "law {dry}: xy"
    assert template.placeholders == {"domain", "first", "second"}
    with pytest.raises(InputError, match=r"no placeholder \{tone\}; it has prompt$"):
        PLAIN.with_values({"tone": "dry"})


def test_another_answer_may_be_asked_for():
    assert PLAIN.render(PAIR, answer="{x}")[0]["content"].endswith("or text of b? {x}")
    without = PromptTemplate("t", "{first}{second}")
    assert without.render(PAIR, answer="Now.")[0]["content"].endswith("text of b\n\nNow.")


# Checks


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ("{first} {", "template t, line 1: '{' is not a placeholder; write {{ and }} for braces"),
        ("{first} {prompt}", "template t: no {second}, the response shown there"),
        (
            "{first}{second}{system_a}",
            "template t: {system_a} does not follow the order in which responses are shown; "
            "use {first} and {second}",
        ),
        ("{first}{second}{label}", "template t: {label} would tell the judge the answer"),
    ],
)
def test_a_bad_template_is_refused(user, message):
    with pytest.raises(InputError) as caught:
        PromptTemplate("t", user)
    assert str(caught.value).startswith(message)


def test_pairs_have_to_have_what_a_template_names():
    pairs = read_pairs(
        {"item": ["q1", "q2"], "a": ["x", "y"], "b": ["y", "x"], "tone": ["dry", None]}
    )
    PromptTemplate("t", "{first}{second}").check(pairs)
    with pytest.raises(InputError, match=r"no column for \{topic\}; found first, second, tone$"):
        PromptTemplate("t", "{first}{second}{topic}").check(pairs)
    with pytest.raises(InputError) as caught:
        PromptTemplate("t", "{first}{second}{tone}").check(pairs)
    assert (caught.value.row, caught.value.column) == (2, "tone")


# Files


def test_a_template_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'system = "Be fair. {ties}"\nuser = "{first} {second} {answer}"\nties = "Ties happen."\n'
        '[answer]\nkind = "line"\nfirst = "1"\nsecond = "2"\ntie = "0"\n'
    )
    template = get_template(path)
    assert template == get_template(str(path))
    assert template.name == "mine"
    assert template.answer == AnswerFormat("line", "1", "2", "0")
    system, user = template.render(PAIR)
    assert system == {"role": "system", "content": "Be fair. Ties happen."}
    assert user["content"].endswith("Verdict: 1, Verdict: 2 or Verdict: 0.")
    path.write_text('name = "n"\nuser = "{first}{second}"\nanswer = {tie = false}\n')
    assert (get_template(path).name, get_template(path).answer.tie) == ("n", None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"user = ", "Invalid value"),
        (b"user = 3", "expected string"),
        (b'usr = "x"', "PromptTemplate.__init__() got an unexpected keyword argument 'usr'"),
    ],
)
def test_a_bad_file_is_named(tmp_path, content, message):
    path = tmp_path / "t.toml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        get_template(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_templates_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: No such file"):
        get_template(tmp_path / "none.toml")
    with refused("template", got="reward", expected="one of translation,"):
        get_template("reward")
    assert get_template("response") is TEMPLATES["response"]
