"""The conda recipe: rattler-build renders it, and it asks for what pyproject.toml asks for."""

import os
import re
import tomllib

import pytest

from pages import ROOT


@pytest.mark.integration
def test_the_recipe_is_rendered_and_says_what_the_package_says():
    if os.environ.get("CI") != "true":
        pytest.importorskip("rattler_build")
    from rattler_build import Stage0Recipe, VariantConfig

    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    forge = VariantConfig({"c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]})
    (rendered,) = Stage0Recipe.from_yaml(text).render(forge)
    recipe = rendered.recipe.to_dict()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert recipe["package"] == {"name": "btdagg", "version": version}
    extras = project["optional-dependencies"]
    wanted = {*project["dependencies"], *extras["tables"], *extras["cli"]}
    wanted = {name for name in wanted if not name.startswith("btdagg")} | {"python"}
    assert {line.replace(" ", "") for line in recipe["requirements"]["run"]} == wanted
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    assert all(
        (ROOT / name).exists() or name == "THIRDPARTY.yml"
        for name in recipe["about"]["license_file"]
    )
