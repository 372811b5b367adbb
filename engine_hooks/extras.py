"""How to install an extra beside this Tachograph, from wherever it was installed."""

import json
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

NAME: Final = "tachograph"


def install_command(*extras: str) -> str:
    """The command that adds these extras, to be run by a shell."""
    return f"{sys.executable} -m pip install {requirement(','.join(extras), _origin())}"


def requirement(extras: str, origin: Mapping[str, Any]) -> str:
    """What pip is to install.

    Args:
        extras: Their names, separated by commas.
        origin: Where the package came from, as `direct_url.json` of its installation says; empty is an index.
            Source: https://packaging.python.org/en/latest/specifications/direct-url/.
    """
    url = str(origin.get("url", ""))
    if not url:
        return shlex.quote(f"{NAME}[{extras}]")
    if origin.get("dir_info", {}).get("editable"):
        return f"-e {shlex.quote(f'{unquote(urlsplit(url).path)}[{extras}]')}"
    version_control = origin.get("vcs_info", {})
    if version_control:
        url = f"{version_control['vcs']}+{url}@{version_control['commit_id']}"
    return shlex.quote(f"{NAME}[{extras}] @ {url}")


def _origin() -> Mapping[str, Any]:
    """A checkout that is imported and was never installed is taken for an editable one."""
    here = Path(__file__).parents[1]
    told = [one.read_text("direct_url.json") for one in distributions(name=NAME)]
    if known := next(filter(None, told), None):
        return dict(json.loads(known))
    return {"url": here.as_uri(), "dir_info": {"editable": True}} if (here / "pyproject.toml").is_file() else {}
