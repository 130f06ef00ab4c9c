"""Packages that extend btdagg, installed into a folder as pip does it, without a network."""

import importlib
import shutil
import sys
import tomllib


def install(project, target):
    """Copy the modules of a project to a folder, and write what its pyproject.toml says of it."""
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(project / "src", target, dirs_exist_ok=True)
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in settings.get("entry-points", {}).items()
    )
    told = target / f"{settings['name'].replace('-', '_')}-{settings['version']}.dist-info"
    told.mkdir(exist_ok=True)
    (told / "entry_points.txt").write_text(groups, encoding="utf-8")
    metadata = f"Metadata-Version: 2.1\nName: {settings['name']}\nVersion: {settings['version']}\n"
    (told / "METADATA").write_text(metadata, encoding="utf-8")


class Installed:
    """A folder of installed packages, which this process imports from until it is closed."""

    def __init__(self, target):
        self.target, self._modules = target, set(sys.modules)
        target.mkdir(exist_ok=True)
        sys.path.insert(0, str(target))
        importlib.invalidate_caches()

    def close(self):
        sys.path.remove(str(self.target))
        for name in set(sys.modules) - self._modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file and file.startswith(str(self.target)):
                del sys.modules[name]
