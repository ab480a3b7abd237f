"""The example of docs/whatif.md prints what the page says, to the last digit."""

import re
import shlex
from pathlib import Path

import pytest

from conftest import Cli


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_example_prints_what_the_page_shows(
    cli: Cli, repository: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (repository / "docs/whatif.md").read_text("utf-8")
    example = page[page.index("## An example") : page.index("## Without a trace")]
    (command,) = re.findall(r"```sh\n(.*?)\n```", example, flags=re.DOTALL)
    shown = re.findall(r"```text\n(.*?)\n```", example, flags=re.DOTALL)
    trace = (data_dir / "traces/azure_conv_2023_first40min.csv.gz").read_bytes()
    (tmp_path / "azure_conv.csv.gz").write_bytes(trace)
    monkeypatch.chdir(tmp_path)

    ran = cli(*shlex.split(command)[1:])

    assert ran.exit_code == 0
    tables = [table for block in shown for table in block.split("\n\n")]
    assert len(tables) == 8
    assert [table for table in tables if table not in ran.stdout] == []
