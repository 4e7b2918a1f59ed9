"""Settings shared by all tests."""

import os

# Tests run side by side, one thread each.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import HealthCheck, settings  # noqa: E402

# No deadlines: speed is measured in benchmarks/, and the first call of a kernel compiles it.
settings.register_profile(
    "airpass", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("airpass")
