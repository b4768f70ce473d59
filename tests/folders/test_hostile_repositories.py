"""Unpacked folders that claim to belong to a repository beside them: each has a project of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.folders.folder_client import Machine

#: What a folder contains by path: the text of a file, the target of a link, or nothing for a folder.
Layout = dict[str, str | Path | None]


def repository(path: str, work_tree: str | None = None) -> Layout:
    """Return a data folder of Git, as Git itself would accept it."""
    config = "[core]\n\tbare = false\n" + (f"\tworktree = {work_tree}\n" if work_tree is not None else "")
    return {
        f"{path}/HEAD": "ref: refs/heads/main\n",
        f"{path}/objects": None,
        f"{path}/refs": None,
        f"{path}/config": config,
    }


def claim(data: str, common: str = "../..", back: str = "../../../.git") -> Layout:
    """Return a `.git` file, and the data of the worktree that it names."""
    return {
        ".git": f"gitdir: {data}\n",
        f"{data}/HEAD": "ref: refs/heads/main\n",
        f"{data}/commondir": f"{common}\n",
        f"{data}/gitdir": f"{back}\n",
    }


def own(work_tree: str, name: str = "vendor") -> Layout:
    """Return a repository within the folder that knows the folder, and names another work tree."""
    return {**repository(name, work_tree), **claim(f"{name}/worktrees/w")}


#: The repository `website` beside each folder has the worktree `fix`, and the worktree `gone` was deleted.
LAYOUTS: dict[str, Layout] = {
    # The repository is in the folder, and `core.worktree` leads out of it.
    "relative work tree": own("../../website"),
    "absolute work tree": own("{beside}/website"),
    "work tree through a folder of its own": own("../vendor/../../website"),
    "work tree through a link": {**own("../beside/website"), "beside": Path("..")},
    "link as the work tree": {**own("../site"), "site": Path("../website")},
    "worktree of the other repository": own("../../fix"),
    "data of the other repository as the work tree": own("../../website/.git"),
    "folder in the other repository": own("../../website/pages"),
    "submodule of the other repository": own("../../website/lib"),
    "bare repository": own("../../bare.git"),
    "home folder": own("../../home"),
    "folder around": own("../.."),
    "without HEAD": {k: v for k, v in own("../../website").items() if k != "vendor/HEAD"},
    "without objects": {k: v for k, v in own("../../website").items() if k != "vendor/objects"},
    "upper case": {**own("x"), "vendor/config": "[CORE]\nWorkTree=../../website\n"},
    "several work trees": {**own("x"), "vendor/config": "[core]\nworktree = ..\nworktree = ../../website\n"},
    "hidden repository": own("../../website", ".vendor"),
    "named like a submodule": own("../../website", "modules"),
    # The folder names the data of the other repository.
    "its data": {".git": "gitdir: ../website/.git\n"},
    "data of its worktree": {".git": "gitdir: ../website/.git/worktrees/fix\n"},
    "data of its deleted worktree": {".git": "gitdir: ../website/.git/worktrees/gone\n"},
    "data of its submodule": {".git": "gitdir: ../website/.git/modules/lib\n"},
    "link to the .git of its worktree": {".git": Path("../fix/.git")},
    "link to its .git": {".git": Path("../website/.git")},
    "link to the .git of its submodule": {".git": Path("../website/lib/.git")},
    # The folder brings the data of a worktree, which name the other repository.
    "its repository as commondir": claim("data", "../../website/.git", "../.git"),
    "its repository as absolute commondir": claim("data", "{beside}/website/.git", "../.git"),
    "link to its worktrees": {
        **claim("data", "../../website/.git", "../.git"),
        "worktrees": Path("../website/.git/worktrees"),
    },
    "repository with its worktrees": {
        **repository("vendor", "../../website"),
        "vendor/worktrees": Path("../../website/.git/worktrees"),
        ".git": "gitdir: vendor/worktrees/fix\n",
    },
    "link to its repository": {
        "vendor": Path("../website/.git"),
        ".git": "gitdir: vendor/worktrees/fix\n",
    },
    "link to its bare repository": {
        "vendor": Path("../bare.git"),
        ".git": "gitdir: vendor/worktrees/one\n",
    },
    "back to nowhere": claim("data", "../../website/.git", "\0"),
    "nowhere": {".git": "gitdir: /nowhere/.git/worktrees/x\n"},
    "empty path": {".git": "gitdir:"},
    "empty": {".git": ""},
    "other text": {".git": "not Git"},
    "too long": {".git": "gitdir: " + "x" * 10_000},
    "NUL": {".git": "gitdir: \0"},
    "back to its worktree": claim("data", "../../website/.git", "../../fix/.git"),
}


def create(folder: Path, layout: Layout) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in layout.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        elif isinstance(content, Path):
            path.symlink_to(content)
        else:
            path.write_text(content.replace("{beside}", str(folder.parent)))


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A repository with worktrees and a submodule, and a bare one; each has a project with a prompt."""
    machine = Machine(tmp_path_factory.mktemp("machine"))
    submodule: Layout = {
        **repository(".git/modules/lib", "../../../lib"),
        "lib/.git": "gitdir: ../.git/modules/lib\n",
    }
    create(machine.path / "website", {**repository(".git"), **submodule, "pages": None})
    create(machine.path / "bare.git", repository("."))
    for top, data, name in (
        ("website", "website/.git/worktrees", "fix"),
        ("website", "website/.git/worktrees", "gone"),
        ("bare", "bare.git/worktrees", "one"),
    ):
        common: Layout = {f"{name}/HEAD": "x", f"{name}/commondir": "../..\n"}
        back: Layout = {f"{name}/gitdir": f"{machine.path / name}/.git\n"}
        create(machine.path / data, {**common, **back})
        if name != "gone":
            create(machine.path / name, {".git": f"gitdir: {machine.path / data / name}\n"})
            assert machine.write(machine.path / name, "secret") == top
    assert machine.write(machine.path / "website" / "lib", "secret") == "lib"
    return machine


@pytest.mark.parametrize(("number", "layout"), [*enumerate(LAYOUTS.values())], ids=[*LAYOUTS])
def test_a_folder_that_claims_a_repository_is_its_own_top(
    beside: Machine, number: int, layout: Layout
) -> None:
    hostile = beside.path / f"hostile-{number}"
    create(hostile, layout)
    with beside.connect(hostile) as client:
        assert client.prompts() == []
        assert client.save("secret") == hostile.name
    assert beside.projects()[hostile.name] == [os.fspath(hostile)]


def test_a_hidden_folder_in_a_repository_is_not_the_repository(beside: Machine) -> None:
    """What it names as its repository is its own data, and the folder around knows nothing of it."""
    hidden = beside.path / "website" / ".unpacked"
    create(hidden, {**repository("."), "worktrees/w/HEAD": "x", "worktrees/w/commondir": "../..\n"})
    create(hidden, {"worktrees/w/gitdir": "../../work/.git\n", "work/.git": "gitdir: ../worktrees/w\n"})
    assert beside.read(hidden / "work") == []
    assert beside.write(hidden / "work") not in ("website", "default")
