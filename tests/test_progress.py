"""The progress bar: quiet unless asked, and never on the standard output."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toprank.progress import progress


@pytest.mark.parametrize("enabled", [False, 0])
def test_nothing_is_shown_when_not_asked_for(capfd, enabled):
    with progress(2, "rounds", enabled) as advance:
        advance()
        advance(1, loss=0.5)
    assert capfd.readouterr() == ("", "")


def test_rich_is_imported_only_for_a_bar():
    code = (
        "import sys; from toprank.progress import progress\n"
        "with progress(1, 'x', False) as advance: advance()\n"
        "raise SystemExit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_bar_goes_to_the_error_stream(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress(2, "rounds [of 2]") as advance:
        advance(loss=0.123456)
        advance(model="a[b]")
    out, err = capfd.readouterr()
    assert out == ""
    assert "rounds" in err


def test_errors_pass_through():
    with pytest.raises(ZeroDivisionError), progress(2, "rounds", True):
        1 / 0  # noqa: B018
