"""A short attack; docs/reference/reliability.md says how to run a long one."""

import os
from pathlib import Path

import pytest

from attack import campaign, faults
from attack.files import prepare

SEED = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("attack")
    prepare(made)
    return made


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_nothing_but_right_results_and_clear_refusals(
    first: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    results = [campaign.run_case(SEED, number, folder) for number in range(first, first + 100)]
    failures = [one for one in results if one["outcome"] == "FAILED"]
    assert not failures
    outcomes = {one["outcome"] for one in results}
    assert {"designed", "refused", "done"} <= outcomes  # the attack reaches all of them


def test_a_case_can_be_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    kinds = [campaign.kind_of(SEED, number) for number in range(1000)]
    for kind, (_, share) in campaign.KINDS.items():
        assert abs(kinds.count(kind) - 10 * share) < 60  # five standard deviations at most
    assert campaign.run_case(SEED, 3, folder) == campaign.run_case(SEED, 3, folder)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc to find worker processes")
@pytest.mark.parametrize("name", ["signal", "worker killed", "damaged files", "not writable"])
def test_runs_recover_from_faults(name: str) -> None:
    number = next(n for n in range(1000) if faults.fault_of(SEED, n)[0] == name)
    result = faults.run_fault(SEED, number)
    assert result["outcome"] in ("recovered", "refused, recovered"), result["message"]
