"""The skill for coding agents is what docs/agents.md says, and names commands that there are.

Its blocks are run by test_docs.py.
"""

import re

import pytest

from pages import ROOT

SKILL = ROOT / "skills" / "btdagg" / "SKILL.md"


@pytest.fixture
def made(monkeypatch):
    """The skill as it is made now."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    from skill import skill

    return skill()


def test_the_skill_is_up_to_date(made):
    assert SKILL.read_text(encoding="utf-8") == made, "python docs/site/skill.py writes it"


def test_it_is_a_skill(made):
    header = re.match(r"---\n(.+?)\n---\n", made, re.DOTALL)[1]
    assert f"name: {SKILL.parent.name}\n" in header
    description = re.search(r"description: >-\n((?:  .+\n)+)", header)[1]
    assert len(" ".join(description.split())) <= 1024
    assert len(made) < 20_000  # some 5,000 tokens
    assert not re.search(r"\]\((?!https://)", made)  # where it lies there are no other pages
    parts = ["When", "Steps", "What not to claim", "What often goes wrong"]
    assert re.findall("^## (.+)$", made, re.MULTILINE) == parts


def test_its_commands_have_the_options_that_it_names(made, cli):
    named = {}
    for code in re.findall(r"`(btdagg [^`]+)`", made):
        name, *words = code.split()[1:]
        options = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
        named.setdefault(name, set()).update(options)
    assert {"check", "estimate", "gate", "evaluate", "compare", "plan", "choose"} <= named.keys()
    for name in named.keys() - {"--version", "COMMAND"}:
        status, out, _ = cli(name, "--help")
        assert status == 0, name
        offered = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", out))
        assert named[name] <= offered, name
