"""What to type to install an extra: what works from where this Tachograph came from."""

import shlex
import sys
from typing import Any

import pytest
from packaging.requirements import Requirement

from engine_hooks.extras import install_command, requirement

COMMIT = "f84515c0000000000000000000000000000000000"


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        ({}, None),
        ({"url": "file:///a%20b/clone", "dir_info": {}}, "file:///a%20b/clone"),
        ({"url": "file:///w/tachograph-0.1.0-py3-none-any.whl", "archive_info": {}}, "file:///w/tachograph-0.1.0-py3-none-any.whl"),
        ({"url": "https://host/t.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}, f"git+https://host/t.git@{COMMIT}"),
    ],
    ids=["index", "directory", "wheel", "git"],
)  # fmt: skip
def test_what_pip_reads_is_the_same_package_with_its_extras(origin: dict[str, Any], url: str | None) -> None:
    (word,) = shlex.split(requirement("service,oidc", origin))
    read = Requirement(word)
    assert (read.name, read.extras, read.url) == ("tachograph", {"service", "oidc"}, url)


def test_an_editable_clone_stays_one() -> None:
    origin = {"url": "file:///a%20b/clone", "dir_info": {"editable": True}}
    assert shlex.split(requirement("notify", origin)) == ["-e", "/a b/clone[notify]"]


def test_it_is_this_interpreter_that_gets_it() -> None:
    assert install_command("service", "oidc").startswith(f"{sys.executable} -m pip install ")
    assert "[service,oidc]" in install_command("service", "oidc")
