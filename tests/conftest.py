"""Settings shared by all tests."""

import os

# Tests run side by side, one thread each.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from importlib.util import find_spec  # noqa: E402
from typing import Any  # noqa: E402

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from airpass import cli  # noqa: E402
from command_line import Outcome  # noqa: E402

# No deadlines: speed is measured in benchmarks/, and the first call of a kernel compiles it.
settings.register_profile(
    "airpass", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("airpass")

# They run in environments of their own: `make test-importers`, `make test-bridges`.
collect_ignore = [
    f"{folder}/test_{name}.py"
    for folder, name, needed in (
        ("importers", "sionna_rt", "sionna"),
        ("importers", "deepmimo", "deepmimo"),
        ("bridges", "flower", "flwr"),
        ("bridges", "pfl", "pfl"),
    )
    if find_spec(needed) is None
]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: object) -> Outcome:
        code = 0
        try:
            cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return call
