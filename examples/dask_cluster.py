"""A sweep on a Dask cluster; here one that is started on this machine.

Run: python examples/dask_cluster.py
"""

from distributed import LocalCluster

import airpass

STUDY = {
    "name": "snr",
    "schemes": ["airpass", "airpass-mp"],
    "trials": 3,
    "axis": {"field": "radio.snr_db", "values": [0, 5, 10]},
    "scenario": {"receiver": {"waveguides": 3, "antennas": 3}},
}

if __name__ == "__main__":  # workers import this file
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        study = airpass.sweep(STUDY, "runs/snr", dask=cluster.scheduler_address, report=print)
    print(len(study.rows), "rows in runs/snr")
